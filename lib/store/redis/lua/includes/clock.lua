--[[
  Gives a script `now`, the server's clock in us, and `text(number)`: Lua's default format loses digits of numbers this large.
]]
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local function text(number) return string.format('%.0f', number) end
