-- Epochs: since when the server has its data, in a key of its own. Needs clock.

-- emptied: for how many milliseconds the node is not counted as its data is new, and the error if that is not known.
local function emptied(epoch, delay)
  local since = redis.pcall('GET', epoch)
  if type(since) == 'table' then
    if string.find(since.err, 'WRONGTYPE', 1, true) then
      since = {err = 'NOEPOCH ' .. since.err}
    end
    return nil, since
  end
  if since and not string.find(since, '^%d+$') then
    return nil, {err = 'NOEPOCH the epoch is not a number'}
  end
  local time = now()
  -- After a clock was set back an epoch of the future would keep the node out for as long as that: it begins anew.
  if not since or tonumber(since) > time then
    redis.call('SET', epoch, whole(time))
    return delay
  end
  return tonumber(since) + delay - time
end
