-- Gives back one level of a fair lock, or the whole of it and the place in its queue, and tells the head of the queue.
--
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- KEYS[2]  queue: list of owners, head first
-- KEYS[3]  scores of the queue
-- KEYS[4]  turn of the head
-- ARGV[1]  owner
-- ARGV[2]  hold count to leave behind (absolute); 0 drops the owner whatever its count, from the queue too
-- ARGV[3]  window of the owner in milliseconds
-- ARGV[4]  channel prefix of the waiters
-- ARGV[5]  PUBLISH or SPUBLISH
-- ARGV[6]  milliseconds that a head has to take its turn
-- ARGV[7]  the same for one that nobody listens for
--
-- Returns  {status, refusal} as release.lua; an owner that was only queued gets -1
-- Retry    safe: a second run answers -1 or leaves the same count behind

-- Uses lower, announce, clock, queue
local status = -1
if tonumber(ARGV[2]) > 0 then
  if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    return {-1, ''}
  end
  return lower(KEYS[1], ARGV[1], ARGV[2]) or {0, ''}
end
if redis.call('HDEL', KEYS[1], ARGV[1]) == 1 then
  redis.call('DEL', KEYS[4])
  status = 1
end
local led = redis.call('LINDEX', KEYS[2], 0) == ARGV[1]
local queued = withdraw(KEYS[2], KEYS[3], ARGV[1], tonumber(ARGV[3]))
local refusal = ''
if (status == 1 or queued) and redis.call('PTTL', KEYS[1]) == -2 then
  local time = now()
  purge(KEYS[2], KEYS[3], time)
  if led and redis.call('LINDEX', KEYS[2], 0) then
    -- The next one's turn begins, even if there is one in its name: it was the head before, left without our hearing of it
    -- and came back, and windows add up to the same score.
    redis.call('DEL', KEYS[4])
  end
  local _
  _, refusal = offer(KEYS[2], KEYS[3], KEYS[4], time, nil, ARGV[5], ARGV[4], tonumber(ARGV[6]), tonumber(ARGV[7]))
end
return {status, refusal}
