local redis = (function(most_commands, most_values)
  local real, commands = redis, 0

  -- measured counts a command's reply, and raises an error if there was too much. A script that
  -- catches it gets the same at its next command.
  local function measured(reply)
    commands = commands + 1
    local values = type(reply) == 'table' and #reply or 1
    if commands > most_commands or values > most_values then
      local text = 'ERR a script has called ' .. commands .. ' commands, the last of which returned '
        .. values .. ' values'
      if real.REDIS_VERSION then error({err = text}) end
      error(text, 0)
    end
    return reply
  end

  return setmetatable({
    call = function(...) return measured(real.call(...)) end,
    pcall = function(...) return measured(real.pcall(...)) end,
  }, {__index = real})
end)()
