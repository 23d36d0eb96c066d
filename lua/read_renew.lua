--!df flags=allow-undeclared-keys
-- Renews the leases of a batch of read locks, each for its presumed holder.
-- KEYS[2i-1]  lock: hash of `mode`, owner -> read holds, owner:write -> write holds
-- KEYS[2i]    the first of the owner's read holds. It must be a key that exists, because a cluster
--             that moves the slot replies TRYAGAIN for missing keys, and leases would expire
-- ARGV[1]     lease in milliseconds
-- ARGV[i+1]   owner
-- Returns  a list: 1 = renewed, 0 = the owner holds no read lock there any more
-- Retry    safe: each TTL becomes max(what is left, lease)

-- Needs attempt, bounds
local lease, renewed = tonumber(ARGV[1]), {}
for i = 1, #ARGV - 1 do
  local lock, holds = KEYS[2 * i - 1], string.sub(KEYS[2 * i], 1, -3) -- without the number
  local count, refusal = attempt('HGET', lock, ARGV[i + 1])
  -- An overwritten key of another type must not prevent the renewal of the others.
  if refusal and not string.find(refusal.err, 'WRONGTYPE', 1, true) then return refusal end
  renewed[i] = 0
  for number = 1, math.min(tonumber(count) or 0, max_entries) do
    local left = redis.call('PTTL', holds .. ':' .. number)
    if left ~= -2 then renewed[i] = 1 end
    if left >= 0 and left < lease then redis.call('PEXPIRE', holds .. ':' .. number, lease) end
  end
  if renewed[i] == 0 then
    -- Needs not_held
    refusal = not_held(lock)
    if refusal then return refusal end
  elseif redis.call('PTTL', lock) < lease then
    redis.call('PEXPIRE', lock, lease)
  end
end
return renewed
