-- Inspect: who holds the lock here, how often, for how long, and the highest token granted. Changes nothing.
--
-- KEYS  1 lock  2 fence
-- ARGV  1 last moment (unused)
--
-- held    by the holder in the reply, or by a key of another type
-- absent  nobody's
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local fence = tonumber(redis.call('GET', KEYS[2]) or 0)
local ttl = redis.call('PTTL', KEYS[1])
if ttl == -2 then
  return {'absent', fence, -2, '', 0, now}
end
-- As in acquire.lua: what is no lock is somebody else's.
local fields = redis.pcall('HLEN', KEYS[1])
if type(fields) == 'table' and not string.find(fields.err, 'WRONGTYPE', 1, true) then
  fields.err = fields.err .. ': HLEN'
  return fields
elseif type(fields) == 'table' or fields > 64 then
  return {'held', fence, ttl, '', 0, now}
end
local held = redis.call('HGETALL', KEYS[1])
return {'held', fence, ttl, held[1], tonumber(held[2]) or 0, now}
