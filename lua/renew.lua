-- Renews the leases of a batch of locks, each for its presumed holder.
-- KEYS[i]    lock: hash of owner -> hold count; its TTL is the lease
-- ARGV[1]    lease in milliseconds
-- ARGV[i+1]  owner of KEYS[i]
-- Returns  a list: 1 = renewed, 0 = the owner does not hold that lock any more
-- Retry    safe: the TTL becomes max(what is left, lease)

-- Needs attempt
local lease, renewed = tonumber(ARGV[1]), {}
for i, lock in ipairs(KEYS) do
  local held, refusal = attempt('HEXISTS', lock, ARGV[i + 1])
  -- An overwritten key of another type must not prevent the renewal of the others.
  if refusal and not string.find(refusal.err, 'WRONGTYPE', 1, true) then return refusal end
  if held ~= 1 then
    -- Needs not_held
    refusal = not_held(lock)
    if refusal then return refusal end
  elseif redis.call('PTTL', lock) < lease then
    redis.call('PEXPIRE', lock, lease)
  end
  renewed[i] = held or 0
end
return renewed
