local redis = (function(...)
  local real, refused = redis, {}
  for _, command in ipairs({...}) do refused[command] = true end

  -- instead returns a function that calls a command or, if that is refused, one that no script may
  -- call: the words of a refusal differ between servers, and these are the server's own.
  local function instead(call)
    return function(command, ...)
      local name = string.upper(command)
      if refused[name] or refused[name .. '|' .. string.upper(tostring((...)))] then
        return call('MULTI')
      end
      return call(command, ...)
    end
  end

  return setmetatable({call = instead(real.call), pcall = instead(real.pcall)}, {__index = real})
end)()
