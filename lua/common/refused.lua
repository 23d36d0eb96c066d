-- refused returns the reply to a request for a held lock: left, the PTTL of the lock; one of its
-- holders; and nap, in how many milliseconds to ask again, -1 = when the lease is over.
local function refused(lock, left, nap)
  local holder = ''
  for _, field in ipairs(redis.call('HKEYS', lock)) do
    if holder == '' and field ~= 'mode' then holder = field end
  end
  return {left, holder, nap}
end
