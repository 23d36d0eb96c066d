-- refused returns the answer to a request that a hold is in the way of: left, the PTTL of the lock;
-- one of its holders; and in how many milliseconds to look again, -1 = when the lease is over.
local function refused(lock, left, nap)
  local holder = ''
  for _, field in ipairs(redis.call('HKEYS', lock)) do
    if holder == '' and field ~= 'mode' then holder = field end
  end
  return {left, holder, nap}
end
