-- Needs attempt
-- announce publishes a message, and returns the server's refusal, '' if there is none, and how many
-- heard it. An ACL without the channel must not undo or hide a release.
local function announce(verb, channel, message)
  local heard, refusal = attempt(verb, channel, message)
  return refusal and refusal.err or '', heard or 0
end
