-- refused returns the reply to a request for a held lock: left, the PTTL of the lock; one of its
-- holders; and sleep, in how many milliseconds to ask again, -1 = when the lease has ended. holders
-- may have what HRANDFIELD has returned already.
local function refused(lock, left, sleep, holders)
  local holder = ''
  -- HRANDFIELD instead of HKEYS, which returns all fields of a hash that may not even be a lock.
  holders = holders or redis.call('HRANDFIELD', lock, '10')
  for i = 1, #holders do
    local field = holders[i]
    if holder == '' and field ~= 'mode' then holder = string.sub(field, 1, 256) end
  end
  return {left, holder, sleep}
end
