-- Revoke: some holders can neither renew nor restore the lock on this node any more. It deletes nothing: this is the first
-- step of a force-release, and force_release.lua is the second.
--
-- KEYS  1 lock  2 revoked
-- ARGV  1 last moment (node's clock, us; 0 = none)  2 how long the revocation lives at least (ms)  3... holders
--
-- stored   the revocation is stored; the reply tells who has the lock here, and the TTL left
-- expired  it came after its last moment and did nothing
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(ARGV[1])
if last > 0 and now > last then
  return {'expired', 0, -2, '', 0, now}
end

-- Who has the lock here.
local ttl = redis.call('PTTL', KEYS[1])
local held = {}
if ttl ~= -2 then
  -- As in acquire.lua: what is no lock has no holder.
  local fields = redis.pcall('HLEN', KEYS[1])
  if type(fields) == 'table' and not string.find(fields.err, 'WRONGTYPE', 1, true) then
    fields.err = fields.err .. ': HLEN'
    return fields
  elseif type(fields) ~= 'table' and fields <= 64 then
    held = redis.call('HGETALL', KEYS[1])
  end
end

local revoked = redis.call('GET', KEYS[2]) or ''
for i = 3, #ARGV do
  if ARGV[i] ~= '' and not string.find(' ' .. revoked .. ' ', ' ' .. ARGV[i] .. ' ', 1, true) then
    -- A holder that was revoked earlier may not have noticed yet: it stays on the list.
    revoked = revoked == '' and ARGV[i] or revoked .. ' ' .. ARGV[i]
  end
end
-- Bounded, or the list could grow for ever. The newest holders are the ones that may not have noticed yet.
while #revoked > 2000 do
  revoked = string.match(revoked, ' (.*)') or ''
end
if revoked ~= '' then
  local lives = math.max(tonumber(ARGV[2]), ttl, redis.call('PTTL', KEYS[2]))
  -- With its memory full a server refuses SET, but not in a script that has begun to write: a lock can be force-released then, too.
  redis.call('PEXPIRE', KEYS[2], string.format('%.0f', lives))
  redis.call('SET', KEYS[2], revoked, 'PX', string.format('%.0f', lives))
end
return {'stored', 0, ttl, held[1] or '', tonumber(held[2]) or 0, now}
