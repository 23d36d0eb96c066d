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
-- Returns  nil when the owner has got the lock, 1 when it had it before; else {PTTL of the lock, its holder, -1}, where a
--          PTTL of -1 means "held, no expiry"; or {milliseconds, 1 = for the epoch or 0 = for the restart} when the node is
--          not counted yet
-- Retry    safe: the count is always 1, and an owner that holds the lock already keeps it; the TTL is never shortened. A
--          delay that is over stays so, unless the node forgets again

local left = redis.call('PTTL', KEYS[1])
local again = left ~= -2 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
if left ~= -2 and not again then
  -- Uses refused
  return refused(KEYS[1], -1)
end
local delay = tonumber(ARGV[3])
if delay > 0 then
  -- Also for an owner that has the lock: a server that was restarted may bring back what the owner gave back since, and
  -- somebody else may have it on the other nodes. Who repeats a call to a node that was counted passes again.
  local wait, reason, refusal = 0, 0, nil
  if ARGV[4] == '0' then
    -- Uses uptime
    wait, refusal = restarting(delay)
    if refusal then
      return refusal
    end
  end
  if KEYS[2] then
    -- Uses clock, epoch
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
-- Uses grant
return grant(KEYS[1], left, ARGV[2], ARGV[1], '1') or (again and 1)
