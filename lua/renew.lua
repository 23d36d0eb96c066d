-- Renews the leases of a batch of locks, each for the owner that claims it.
--
-- KEYS[i]    lock: hash of owner -> hold count; its TTL is the lease
-- ARGV[1]    lease in milliseconds
-- ARGV[i+1]  owner of KEYS[i]
--
-- Returns  a list: 1 = renewed, 0 = the owner does not hold that lock any more
-- Retry    safe: the TTL becomes max(what is left, lease)

local lease = tonumber(ARGV[1])
local renewed = {}
for i, lock in ipairs(KEYS) do
  -- One key that somebody overwrote with another type must not cost the others of the batch their renewal.
  local held = redis.pcall('HEXISTS', lock, ARGV[i + 1])
  if type(held) == 'table' then
    if not string.find(held.err, 'WRONGTYPE', 1, true) then
      return held
    end
    held = 0
  end
  if held == 1 and redis.call('PTTL', lock) < lease then
    redis.call('PEXPIRE', lock, lease)
  end
  renewed[i] = held
end
return renewed
