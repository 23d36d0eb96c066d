-- Needs bounds
-- shorten cuts off the texts of a list, and returns the list.
local function shorten(texts)
  for i, text in ipairs(texts) do
    if type(text) == 'string' then texts[i] = string.sub(text, 1, max_text) end
  end
  return texts
end

-- fields_of returns the fields and values of a lock's hash, or an error if the hash has too many
-- fields.
local function fields_of(lock)
  local fields = redis.call('HRANDFIELD', lock, max_entries + 1, 'WITHVALUES')
  if #fields > 2 * max_entries then
    return {err = 'NOTLOCK the hash has more than ' .. max_entries .. ' fields'}
  end
  return shorten(fields)
end
