-- Acquires a fair lock for an owner if no other owner comes first; otherwise queues the owner.
-- KEYS[1] to KEYS[5], ARGV[1] to ARGV[5] as in common/queue.lua
-- ARGV[6]  owner
-- ARGV[7]  hold count to leave behind (absolute)
-- ARGV[8]  lease in milliseconds
-- ARGV[9]  1 = the owner waits in the queue, 0 = it acquires the lock only if no owner is queued
-- ARGV[10] window in milliseconds: how long the owner stays queued if it does not ask again
-- ARGV[11] budget: for how many milliseconds more the owner waits; 0 = without a limit
-- ARGV[12] end of the budget in milliseconds of the server's clock; 0 = unknown: counts from now
-- Returns  as read_acquire.lua, followed by the clock of the server; a PTTL of -2 means that the
--          lock is free, and the returned owner is the head. An owner whose budget has ended does
--          not get the lock
-- Retry    safe: the count is absolute, and an owner that holds the lock or is queued stays so

-- Needs attempt, refused, take, bounds, clock, queue, turn
local owner, lease, window = ARGV[6], tonumber(ARGV[8]), tonumber(ARGV[10])
if redis.call('HEXISTS', lock, owner) == 1 then
  return take(lock, redis.call('PTTL', lock), lease, owner, ARGV[7])
end

local time, left = now(), redis.call('PTTL', lock)
-- An owner has acquired the lock, so the next head gets its own turn. After this DEL, a server that
-- is out of memory rejects no write, so owners can still wait, as for any other lock.
if left ~= -2 then redis.call('DEL', turn) end
local budget, ends = tonumber(ARGV[11]), tonumber(ARGV[12])
-- ends may be unknown, or come from the clock of a server that this server has replaced.
if budget > 0 and (ends == 0 or ends > time + budget) then ends = time + budget end
-- A request that arrives after its caller's wait has ended must leave nothing behind.
local late = ends > 0 and ends <= time
local asking = not late and owner or nil

-- keep makes the owner's score last for spare more milliseconds. The owner is alive, however late
-- it asks, so it keeps its place. Owners behind it keep their distance, because owners of Redisson
-- do not ask again.
local function keep(spare)
  local score, base = redis.call('ZSCORE', scores, owner), time + math.max(left, 0) + spare
  if not score or tonumber(score) >= base + window then return end
  local owners, score_of, all = queued()
  local short_by, before, moved = nil, 0, {}
  for _, other in ipairs(owners) do
    local has = score_of[other] or 0
    if other == owner then short_by = math.max(base, before) + window - has end
    if short_by and short_by > 0 and has > 0 then
      moved[#moved + 1], moved[#moved + 2] = whole(has + short_by), other
    end
    before = has
  end
  score_all(moved)
  if not short_by and all then redis.call('ZREM', scores, owner) end
end

-- A score must last far beyond the next request, unless the owner is about to stop waiting.
local spare = 2 * longest_sleep
if ends == 0 or ends - time > 1000 then keep(spare) end
-- The server's clock may have been set since, or the owner has a better estimate of that clock.
local known = ends > 0 and not late and redis.call('ZSCORE', budgets, owner)
if known then attempt('ZADD', budgets, whole(ends), owner) end
local another = sweep({}, time, left)
local score = redis.call('ZSCORE', scores, owner)

local sleep, _ = -1, nil
if left == -2 then
  _, sleep = offer(time, asking)
  if sleep == 0 and asking then
    local refusal = take(lock, left, lease, owner, ARGV[7])
    if not refusal then
      if redis.call('LINDEX', queue, 0) then pop(time + lease) end
      nudge(lease)
    end
    return refusal
  end
end

if ARGV[9] == '1' and not score and not late then
  local tail = redis.call('LINDEX', queue, -1)
  local base = tail and redis.call('ZSCORE', scores, tail) or time + math.max(left, 0)
  redis.call('ZADD', scores, whole(base + window), owner)
  redis.call('RPUSH', queue, owner)
  if ends > 0 then
    redis.call('ZADD', budgets, whole(ends), owner)
    -- The key lasts longer than all budgets in it, so that the next request finds the budgets that
    -- have ended.
    local lasts = ends - time + 2 * spare
    if redis.call('PTTL', budgets) < lasts then redis.call('PEXPIRE', budgets, whole(lasts)) end
  end
end

local head = redis.call('LINDEX', queue, 0)
if left ~= -2 and head and head ~= owner then
  sleep = longest_sleep -- only the head asks when the lease ends
  if another then nudge(left) end
end
if late then sleep = 10 end -- a caller that still waits asks again, with the clock from this reply
local refusal = left == -2 and {head and -2 or 0, string.sub(head or '', 1, max_text), sleep}
  or refused(lock, left, sleep)
refusal[4] = whole(time)
return refusal
