local refusal = (function(refusal)
  -- slot returns the cluster slot of a key: CRC16 of what is between the first braces, or of all.
  local function slot(key)
    local tag = string.match(key, '{(.-)}')
    if tag and tag ~= '' then key = tag end
    local crc = 0
    for i = 1, #key do
      crc = bit.bxor(crc, bit.lshift(string.byte(key, i), 8))
      for _ = 1, 8 do
        local shifted = bit.band(bit.lshift(crc, 1), 0xFFFF)
        crc = bit.band(crc, 0x8000) ~= 0 and bit.bxor(shifted, 0x1021) or shifted
      end
    end
    return bit.band(crc, 16383)
  end

  for _, key in ipairs(KEYS) do
    if slot(key) ~= slot(KEYS[1]) then return redis.error_reply(refusal) end
  end
end)("CROSSSLOT Keys in request don't hash to the same slot (context='within command')")
if refusal then return refusal end
