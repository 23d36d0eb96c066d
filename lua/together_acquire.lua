-- Takes several reentrant locks, each for an owner, or none of them and says which is in the way and for how long.
--
-- KEYS[i]    lock: hash of owner -> hold count; its TTL is the lease
-- ARGV[1]    lease in milliseconds
-- ARGV[3i-1] owner of KEYS[i]
-- ARGV[3i]   hold count to leave behind (absolute)
-- ARGV[3i+1] 1 = the owner holds the lock already and adds a level, 0 = it takes the lock
--
-- Returns  nil when all owners hold their locks now, else {i - 1, {PTTL of KEYS[i], its holder, -1}}; a PTTL of -1 means
--          "held, no expiry". {i - 1, nil} when the owner that adds a level does not hold the lock any more
-- Retry    safe: the counts are absolute and an owner that holds a lock already keeps it; no TTL is ever shortened

-- Uses refused

-- count_of: an owner's hold count, nil if it does not hold the lock. With HGETALL, as the ACL of a user of plain locks
-- allows that and not HGET.
local function count_of(lock, owner)
  local fields = redis.call('HGETALL', lock)
  for i = 1, #fields, 2 do
    if fields[i] == owner then
      return fields[i + 1]
    end
  end
end

-- All is looked at before anything is written: a key that is not a lock, or that the ACL forbids, is met here.
local counts = {}
for i, lock in ipairs(KEYS) do
  counts[i] = count_of(lock, ARGV[3 * i - 1])
  if not counts[i] then
    if ARGV[3 * i + 1] == '1' then
      return {i - 1, false}
    elseif redis.call('PTTL', lock) ~= -2 then
      return {i - 1, refused(lock, -1)}
    end
  end
end

-- undo: the first locks have the counts again that they had. Leases need no undoing, as they come after all counts.
local function undo(last)
  for i = 1, last do
    if counts[i] then
      redis.pcall('HSET', KEYS[i], ARGV[3 * i - 1], counts[i])
    else
      redis.pcall('HDEL', KEYS[i], ARGV[3 * i - 1])
    end
  end
end

-- A server that is out of memory refuses the first write of a script and no later one. What can fail later is the ACL, which
-- may let a key be read and not written, or forbid PEXPIRE.
for i, lock in ipairs(KEYS) do
  local written = redis.pcall('HSET', lock, ARGV[3 * i - 1], ARGV[3 * i])
  if type(written) == 'table' and written.err then
    undo(i - 1)
    return written
  end
end
for _, lock in ipairs(KEYS) do
  if redis.call('PTTL', lock) < tonumber(ARGV[1]) then
    local expiring = redis.pcall('PEXPIRE', lock, ARGV[1])
    if type(expiring) == 'table' and expiring.err then
      undo(#KEYS)
      return expiring
    end
  end
end
return nil
