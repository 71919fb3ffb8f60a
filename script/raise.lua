-- Raise: store at least token F in the fence, while the lock is H's. The second round of a grant whose nodes did not
-- agree on a token.
--
-- KEYS  1 lock  2 fence
-- ARGV  1 last moment (node's clock, us; 0 = none)  2 holder  3 token  4 TTL of the fence (ms; longer if it is ahead of the clock: see acquire.lua)
--
-- raised   the lock is H's and the fence is at least F
-- absent   nobody's
-- held     somebody else's, or a key of another type
-- expired  it came after its last moment and did nothing
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(ARGV[1])
if last > 0 and now > last then
  return {'expired', 0, -2, '', 0, now}
end

local ttl = redis.call('PTTL', KEYS[1])
if ttl == -2 then
  return {'absent', 0, -2, '', 0, now}
end
-- As in acquire.lua: what is no lock is somebody else's.
local fields = redis.pcall('HLEN', KEYS[1])
if type(fields) == 'table' and not string.find(fields.err, 'WRONGTYPE', 1, true) then
  fields.err = fields.err .. ': HLEN'
  return fields
elseif type(fields) == 'table' or fields > 64 then
  return {'held', 0, ttl, '', 0, now}
end
local count = redis.call('HGET', KEYS[1], ARGV[2])
if not count then
  local held = redis.call('HGETALL', KEYS[1])
  return {'held', 0, ttl, held[1], tonumber(held[2]) or 0, now}
end
local fence = math.max(tonumber(redis.call('GET', KEYS[2]) or 0), tonumber(ARGV[3]))
redis.call('SET', KEYS[2], string.format('%.0f', fence), 'PX',
  string.format('%.0f', ARGV[4] + math.max(0, fence - now) / 1000))
return {'raised', fence, ttl, ARGV[2], tonumber(count), now}
