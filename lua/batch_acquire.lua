-- Acquires several locks, each for an owner; or none, and then returns which lock prevented that.
-- KEYS[i]    lock: hash of owner -> hold count; its TTL is the lease
-- ARGV[1]    lease in milliseconds
-- ARGV[3i-1] owner of KEYS[i]
-- ARGV[3i]   hold count to leave behind (absolute)
-- ARGV[3i+1] 1 = the owner holds the lock and adds a nested hold, 0 = the owner acquires the lock
-- Returns  nil if all owners hold their locks now; else {i - 1, refusal as in acquire.lua}, or
--          {i - 1, nil} if an owner that adds a nested hold does not hold the lock any more
-- Retry    safe: the counts are absolute, an owner that holds a lock keeps it, no TTL gets shorter

-- Needs attempt, not_held, refused
-- The script reads all keys before it writes, to find keys that are not locks or that the ACL
-- forbids. The script does not use HGET, because the ACL of a user of plain locks need not allow
-- HGET.
local counts = {}
for i, lock in ipairs(KEYS) do
  local fields = redis.call('HRANDFIELD', lock, 10, 'WITHVALUES')
  for f = 1, #fields, 2 do
    if fields[f] == ARGV[3 * i - 1] then counts[i] = fields[f + 1] end
  end
  -- No lock has so many fields. Among them the script may miss the owner's count, so undo would
  -- restore the new count.
  if #fields == 20 and not counts[i] and redis.call('HEXISTS', lock, ARGV[3 * i - 1]) == 1 then
    counts[i] = ARGV[3 * i]
  end
  if not counts[i] then
    if ARGV[3 * i + 1] == '1' then return not_held(lock) or {i - 1, false} end
    local left = redis.call('PTTL', lock)
    if left ~= -2 then return {i - 1, refused(lock, left, -1)} end
  end
end

-- undo restores the counts of the first locks. The script sets leases after all counts, so undo
-- need not restore a lease.
local function undo(last)
  for i = 1, last do
    if counts[i] then
      attempt('HSET', KEYS[i], ARGV[3 * i - 1], counts[i])
    else
      attempt('HDEL', KEYS[i], ARGV[3 * i - 1])
    end
  end
end

-- A server that is out of memory rejects the first write of a script and no later write. The ACL
-- can reject a later write, because it may allow only reading a key, or forbid PEXPIRE.
for i, lock in ipairs(KEYS) do
  local _, refusal = attempt('HSET', lock, ARGV[3 * i - 1], ARGV[3 * i])
  if refusal then
    undo(i - 1)
    return refusal
  end
end
for _, lock in ipairs(KEYS) do
  if redis.call('PTTL', lock) < tonumber(ARGV[1]) then
    local _, refusal = attempt('PEXPIRE', lock, ARGV[1])
    if refusal then
      undo(#KEYS)
      return refusal
    end
  end
end
return nil
