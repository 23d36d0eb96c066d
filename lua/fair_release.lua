-- Releases a nested hold of a fair lock; or all holds and the queue entries of several owners.
-- KEYS[1] to KEYS[5], ARGV[1] to ARGV[5] as in common/queue.lua
-- ARGV[6]  hold count to leave behind (absolute); 0 drops owners whatever their count
-- ARGV[7]  owner; with a count of 0 more owners may follow
-- Returns  {status, refusal} as release.lua, status 1 if any of the owners held the lock
-- Retry    safe: a second run returns -1 or leaves the same count behind

-- Needs lower, clock, queue, turn, unpack
if tonumber(ARGV[6]) > 0 then
  if redis.call('HEXISTS', lock, ARGV[7]) == 0 then
    -- Needs not_held
    return not_held(lock) or {-1, ''}
  end
  return lower(lock, ARGV[7], ARGV[6]) or {0, ''}
end

local status, refusal = -1, ''
if redis.call('HDEL', lock, unpack(ARGV, 7)) > 0 then
  redis.call('DEL', turn)
  status = 1
end
local whose = string.match(redis.call('GET', turn) or '', '^%d+ %S+ (%S+)')
local leaving, resigns = {}, false
for i = 7, #ARGV do
  leaving[ARGV[i]] = redis.call('ZSCORE', scores, ARGV[i]) and true or nil
  resigns = resigns or ARGV[i] == whose
end
local time, left = now(), redis.call('PTTL', lock)
redis.call('ZREM', budgets, unpack(ARGV, 7))
local another = sweep(leaving, time, left)
if left ~= -2 then
  if another then nudge(left) end
elseif another or status == 1 or resigns then
  -- The turn of the next head begins, even if the key has a turn with its name and score. The head
  -- may have been the head before, died and come back, and closed gaps may have led to the same
  -- score. The turn also begins if the head has inherited it from an owner of its client that
  -- leaves now.
  redis.call('DEL', turn)
  refusal = offer(time, nil)
end
return {status, refusal}
