-- Acquires a lock on one of several nodes, unless the node may have forgotten locks.
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- KEYS[2]  epoch: since when this server has its data; it has no TTL. Left out if not in use
-- ARGV[1]  owner
-- ARGV[2]  lease in milliseconds
-- ARGV[3]  milliseconds for which a node that may have forgotten locks does not count, 0 = none
-- ARGV[4]  1 = a restart forgets nothing
-- Returns  nil if the owner acquired the lock, 1 if it had the lock before; else as acquire.lua, or
--          {milliseconds, 1 = for the epoch or 0 = for the restart} if the node does not count
-- Retry    safe, as acquire.lua. A delay that is over stays so, unless the node forgets again

local left = redis.call('PTTL', KEYS[1])
local held = left ~= -2 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
if left ~= -2 and not held then
  -- Needs refused
  return refused(KEYS[1], left, -1)
end
local delay, wait, reason = tonumber(ARGV[3]), 0, 0
-- The delay also applies to an owner that has the lock here. A restarted server may restore a hold
-- that was released since, and another owner may have the other nodes. A retry succeeds on a node
-- that counted before.
if delay > 0 and ARGV[4] == '0' then
  -- A server sets LASTSAVE to its clock when it starts, and again after each save. The documentation
  -- of the command says so for Redis, Valkey and Dragonfly. If the last save was long enough ago, so
  -- was the start. INFO would cost the server as much as the rest of this script several times over.
  -- Both clocks are in whole seconds, and a difference of two times or an uptime may be up to a
  -- second too long.
  local needed = delay + 1000
  local saved, time = redis.pcall('LASTSAVE'), redis.pcall('TIME')
  local since = type(saved) == 'number' and saved > 0 and time[1] and tonumber(time[1]) - saved
  if not since or since * 1000 < needed then
    -- Needs attempt
    local info, refusal = attempt('INFO', 'server')
    local uptime = info and string.match(info, 'uptime_in_seconds:(%-?%d+)')
    if not uptime then
      local why = refusal and refusal.err or 'INFO server does not say uptime_in_seconds'
      return {err = 'NOINFO ' .. why}
    end
    -- The uptime is negative after the clock was set back.
    wait = needed - math.max(tonumber(uptime), 0) * 1000
  end
end
if delay > 0 and KEYS[2] then
  -- Needs attempt, clock
  local since, refusal = attempt('GET', KEYS[2])
  if refusal and string.find(refusal.err, 'WRONGTYPE', 1, true) then
    return {err = 'NOEPOCH ' .. refusal.err}
  elseif refusal then
    return refusal
  elseif since and not string.find(since, '^%d+$') then
    return {err = 'NOEPOCH the epoch is not a number'}
  end
  local time = now()
  -- After a clock was set back, the epoch is in the future and would exclude the node until then.
  if not since or tonumber(since) > time then
    redis.call('SET', KEYS[2], whole(time))
    since = time
  end
  local longer = tonumber(since) + delay - time
  if longer > wait then wait, reason = longer, 1 end
end
if wait > 0 then return {wait, reason} end
-- These lines do the same as take. Creating the functions of take would cost a server as much as
-- one more command.
redis.call('HSET', KEYS[1], ARGV[1], '1')
if left < tonumber(ARGV[2]) then
  local expiring = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if expiring ~= 1 then
    if left == -2 then redis.call('DEL', KEYS[1]) end
    return expiring
  end
end
return held and 1 or nil
