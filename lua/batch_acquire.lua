-- Takes several locks, each for an owner; or takes none and says which could not be taken.
-- KEYS[i]    lock: hash of owner -> hold count; its TTL is the lease
-- ARGV[1]    lease in milliseconds
-- ARGV[3i-1] owner of KEYS[i]
-- ARGV[3i]   hold count to leave behind (absolute)
-- ARGV[3i+1] 1 = the owner holds the lock already and adds a level, 0 = it takes the lock
-- Returns  nil when all owners hold their locks now; else {i - 1, refusal as in acquire.lua}, or
--          {i - 1, nil} when an owner that adds a level does not hold the lock any more
-- Retry    safe: the counts are absolute, an owner that holds a lock keeps it, no TTL is shortened

-- Needs attempt, not_held, refused
-- Reads all before writing, to find keys that are not locks or that the ACL forbids. It does not
-- use HGET, because the ACL of a user of plain locks need not allow that.
local counts = {}
for i, lock in ipairs(KEYS) do
  local fields = redis.call('HRANDFIELD', lock, 10, 'WITHVALUES')
  for f = 1, #fields, 2 do
    if fields[f] == ARGV[3 * i - 1] then counts[i] = fields[f + 1] end
  end
  -- Among so many fields, which no lock has, its count may not be found: the new one will do.
  if #fields == 20 and not counts[i] and redis.call('HEXISTS', lock, ARGV[3 * i - 1]) == 1 then
    counts[i] = ARGV[3 * i]
  end
  if not counts[i] then
    if ARGV[3 * i + 1] == '1' then return not_held(lock) or {i - 1, false} end
    local left = redis.call('PTTL', lock)
    if left ~= -2 then return {i - 1, refused(lock, left, -1)} end
  end
end

-- undo restores the counts of the first locks. Leases are written after all counts.
local function undo(last)
  for i = 1, last do
    if counts[i] then
      attempt('HSET', KEYS[i], ARGV[3 * i - 1], counts[i])
    else
      attempt('HDEL', KEYS[i], ARGV[3 * i - 1])
    end
  end
end

-- A server that is out of memory refuses the first write of a script and no later one. Later
-- writes can fail because of an ACL, which may allow only reading a key, or forbid PEXPIRE.
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
