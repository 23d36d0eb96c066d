-- Gives back one level of a fair lock; or, for each of several owners, the whole of it and the place in its queue. Tells the
-- head of the queue.
--
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- KEYS[2]  queue: list of owners, head first
-- KEYS[3]  scores of the queue
-- KEYS[4]  turn of the head
-- KEYS[5]  budgets: sorted set of owner -> when it stops waiting
-- ARGV[1]  channel prefix of the waiters
-- ARGV[2]  PUBLISH or SPUBLISH
-- ARGV[3]  milliseconds that a head has to take its turn
-- ARGV[4]  the same for one that nobody listens for
-- ARGV[5]  milliseconds after which an owner that waits asks again at the latest
-- ARGV[6]  hold count to leave behind (absolute); 0 drops the owners whatever their count, from the queue too
-- ARGV[7]  owner; with a count of 0 more may follow
--
-- Returns  {status, refusal} as release.lua, status 1 if any of the owners held the lock; for those that were only queued -1
-- Retry    safe: a second run answers -1 or leaves the same count behind

-- Uses lower, announce, clock, queue, turn
if tonumber(ARGV[6]) > 0 then
  if redis.call('HEXISTS', lock, ARGV[7]) == 0 then
    return {-1, ''}
  end
  return lower(lock, ARGV[7], ARGV[6]) or {0, ''}
end

local status, refusal = -1, ''
if redis.call('HDEL', lock, unpack(ARGV, 7)) > 0 then
  redis.call('DEL', turn)
  status = 1
end
local leaving, whose, resigns = {}, string.match(redis.call('GET', turn) or '', '^%d+ %S+ (%S+)'), false
for i = 7, #ARGV do
  leaving[ARGV[i]] = redis.call('ZSCORE', scores, ARGV[i]) and true or nil
  resigns = resigns or ARGV[i] == whose
end
local time, left = now(), redis.call('PTTL', lock)
redis.call('ZREM', budgets, unpack(ARGV, 7))
local another = sweep(leaving, time, left)
if left ~= -2 then
  if another then
    nudge(left)
  end
elseif another or status == 1 or resigns then
  -- The next one's turn begins, even if there is one in its name, or that it goes on with: it was the head before, left without
  -- our hearing of it and came back, and gaps close up to the same score; or one of its client was, and has left as it should.
  redis.call('DEL', turn)
  local _
  _, refusal = offer(time, nil)
end
return {status, refusal}
