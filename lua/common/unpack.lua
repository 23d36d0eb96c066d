-- unpack returns the elements of a table. Lua 5.4, which Dragonfly has, moved the function.
local unpack = table.unpack or unpack
