-- Takes a reentrant lock for one owner on one of several nodes, or says who is in the way and for how long, or for how long
-- this node is not counted: it may have forgotten a lock, which it then must not give to somebody else.
--
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- KEYS[2]  epoch: since when this server has its data, in milliseconds of the clock of the server; it has no TTL. Left out:
--          nobody asks whether the data was dropped
-- ARGV[1]  owner
-- ARGV[2]  lease in milliseconds
-- ARGV[3]  for how many milliseconds a node that may have forgotten locks is not counted, 0 = it is
-- ARGV[4]  1 = a restart forgets nothing
--
-- Uses     hold, clock
-- Returns  nil when the owner has got the lock, 1 when it had it before; else {PTTL of the lock, its holder, -1}, where a
--          PTTL of -1 means "held, no expiry"; or {milliseconds, 1 = for the epoch or 0 = for the restart} when the node is
--          not counted yet
-- Retry    safe: the count is always 1, and an owner that holds the lock already keeps it; the TTL is never shortened. A
--          delay that is over stays so, unless the node forgets again

-- restarting: for how many milliseconds the node is not counted after its start, and the error if that is not known.
local function restarting(delay)
  local info = redis.pcall('INFO', 'server')
  if type(info) == 'table' then
    return nil, {err = 'NOINFO ' .. info.err}
  end
  local uptime = string.match(info, 'uptime_in_seconds:(%-?%d+)')
  if not uptime then
    return nil, {err = 'NOINFO INFO server does not say uptime_in_seconds'}
  end
  -- The uptime is the difference of two times in whole seconds: up to a second more than the truth. A clock that was set
  -- back may make it negative.
  return delay + 1000 - math.max(tonumber(uptime), 0) * 1000
end

-- emptied: for how many milliseconds the node is not counted as its data is new, and the error if that is not known.
local function emptied(epoch, delay)
  local since = redis.pcall('GET', epoch)
  if type(since) == 'table' then
    if string.find(since.err, 'WRONGTYPE', 1, true) then
      since = {err = 'NOEPOCH ' .. since.err}
    end
    return nil, since
  end
  if since and not string.find(since, '^%d+$') then
    return nil, {err = 'NOEPOCH the epoch is not a number'}
  end
  local time = now()
  -- After a clock was set back an epoch of the future would keep the node out for as long as that: it begins anew.
  if not since or tonumber(since) > time then
    redis.call('SET', epoch, whole(time))
    return delay
  end
  return tonumber(since) + delay - time
end

local again = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
if not again and redis.call('PTTL', KEYS[1]) ~= -2 then
  return refused(KEYS[1], -1)
end
local delay = tonumber(ARGV[3])
if delay > 0 then
  -- Also for an owner that has the lock: a server that was restarted may bring back what the owner gave back since, and
  -- somebody else may have it on the other nodes. Who repeats a call to a node that was counted passes again.
  local wait, reason, refusal = 0, 0, nil
  if ARGV[4] == '0' then
    wait, refusal = restarting(delay)
    if refusal then
      return refusal
    end
  end
  if KEYS[2] then
    local longer
    longer, refusal = emptied(KEYS[2], delay)
    if refusal then
      return refusal
    end
    if longer > wait then
      wait, reason = longer, 1
    end
  end
  if wait > 0 then
    return {wait, reason}
  end
end
return grant(KEYS[1], redis.call('PTTL', KEYS[1]), ARGV[2], ARGV[1], '1') or (again and 1)
