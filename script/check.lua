-- Check: is this the node that its record tells of, with the memory it had? Asked on every new connection, before
-- anything else, and whenever an answer gives reason to.
--
-- KEYS  1 record of this node
-- ARGV  1 last moment (unused)  2 incarnation to begin, if one has to be begun  3 longest TTL known (ms)
--       4 how many nodes the client is configured with
--       5 does this server write everything to disk before it answers? 'yes', 'no', '' = not asked yet
--       6 for how long a server that Sentinel has replaced may go on voting (ms); 0 = no Sentinel says which one this is
--
-- The record is a hash: incarnation, run and replication (ids of the server that it belongs to), since (us), ttl (the
-- longest in use, ms), nodes, durable; and until (us), the end of its quarantine. Without an "until" nobody has decided
-- yet: a node alone cannot tell whether it is new or has forgotten everything.
--
-- settled    the record is this server's, or has been made so: another server, or one that was started again, begins a
--            new incarnation, with a quarantine as long as the longest TTL
-- unsettled  there was no record: an incarnation has begun, and what it is worth is for settle.lua to say
-- ask        the server was started again, and whether it can have forgotten depends on whether it writes everything to
--            disk; a script cannot ask for that. It did nothing
-- replica    it is no master
-- unguarded  a Sentinel watches it, which would make a replica master that has not got everything (min-replicas-to-write
--            is 0)
--
-- What it answers with besides: see ParseRecord in record.go.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- Not every server that speaks the protocol tells who it is. That it may not tell us is another matter.
local function info(section)
  local text = redis.pcall('INFO', section)
  if type(text) ~= 'table' then
    return text, nil
  elseif string.find(text.err, 'not supported', 1, true) then
    return '', nil
  end
  text.err = text.err .. ': INFO'
  return '', text
end
local server, denied = info('server')
if denied then
  return denied
end
local replication
replication, denied = info('replication')
if denied then
  return denied
end
local memory = info('memory')
local run = string.match(server, 'run_id:(%w+)') or ''
local id = string.match(replication, 'master_replid:(%w+)') or ''
local second = string.match(replication, 'master_replid2:(%w+)') or ''
local role = string.match(replication, 'role:(%w+)') or 'master'

-- Locks have a TTL, so every policy but one may throw them away when the memory is full.
local evicts = string.match(memory, 'maxmemory_policy:([%w-]+)') or ''
if evicts == 'noeviction' or (tonumber(string.match(memory, 'maxmemory:(%d+)') or 0)) == 0 then
  evicts = ''
end

local record = redis.call('HMGET', KEYS[1], 'incarnation', 'run', 'replication', 'until', 'ttl', 'nodes', 'durable', 'since')
local incarnation, ttl = record[1] or '', tonumber(record[5] or 0)
local function answer(status, shortened)
  local quarantine = math.ceil(math.max(0, tonumber(redis.call('HGET', KEYS[1], 'until') or 0) - now) / 1000)
  return {status, incarnation, run, quarantine, ttl, tonumber(record[6] or 0), now - tonumber(record[8] or now), now,
    evicts, shortened or 0}
end

if role ~= 'master' then
  return answer('replica')
end
-- A Sentinel subscribes to this channel of every master that it watches. INFO shows the line only if min-replicas-to-write
-- is set.
local watchers = redis.pcall('PUBSUB', 'NUMSUB', '__sentinel__:hello')
local lingers = tonumber(ARGV[6])
local watched = lingers > 0 or not watchers.err and (tonumber(watchers[2]) or 0) > 0
if watched and not string.find(replication, 'min_slaves_good_slaves', 1, true) then
  return answer('unguarded')
end

if record[1] and record[2] == run and record[3] == id then
  local fields, quarantine, shortened = {}, nil, 0
  if ttl < tonumber(ARGV[3]) then
    ttl = tonumber(ARGV[3])
    fields = {'ttl', ARGV[3]}
  end
  if record[6] ~= ARGV[4] then
    fields[#fields + 1] = 'nodes'
    fields[#fields + 1] = ARGV[4]
  end
  local since, till, full = tonumber(record[8]), tonumber(record[4] or 0), (ttl + lingers) * 1000
  if till > now + full and (lingers > 0 or not watched) then -- who does not know the sentinels does not know how long is full
    -- It began while this server's clock was ahead. What the server forgot, it granted before now.
    shortened = math.floor((till - now - full) / 1000)
    since, quarantine = now, now + full
    record[8] = now
  elseif till > now and till < math.min(since, now) + full then
    -- This server's own record may be as old as its data, and others know of a longer TTL than it could tell when it was
    -- started again. What it has forgotten, it granted before.
    quarantine = math.min(since, now) + full
  end
  if quarantine then
    for _, value in ipairs({'since', string.format('%.0f', since), 'until', string.format('%.0f', quarantine)}) do
      fields[#fields + 1] = value
    end
  end
  if fields[1] then
    local noted = redis.pcall('HSET', KEYS[1], unpack(fields))
    -- A client that connects while the memory is full must get to renew and release. Only a quarantine has to be noted.
    if type(noted) == 'table' and (quarantine or not string.find(noted.err, 'OOM', 1, true)) then
      noted.err = noted.err .. ': HSET'
      return noted
    end
  end
  return answer(record[4] and 'settled' or 'unsettled', shortened)
end

-- Another server than the record's, or none on record. An incarnation begins.
if record[4] and ARGV[5] == '' then
  return answer('ask')
end
incarnation = ARGV[2]
ttl = math.max(ttl, tonumber(ARGV[3]))
-- Written all at once, at the very end: what is cut off on the way there begins nothing. Half a record, with the new
-- server's name and the old one's quarantine, would pass for settled.
local fields = {'incarnation', incarnation, 'run', run, 'replication', id, 'ttl', string.format('%.0f', ttl), 'nodes',
  ARGV[4], 'since', string.format('%.0f', now), 'durable', ARGV[5]}
if record[4] then
  -- Nothing is forgotten if everything was on disk before it was answered, then and now, and if this is the same master
  -- and not a replica that took its place.
  local remembers = record[7] == 'yes' and ARGV[5] == 'yes' and not watched
    and not watchers.err and record[2] ~= run and not string.find(second, '[^0]')
  local till = math.max(tonumber(record[4]), remembers and 0 or now + (ttl + lingers) * 1000)
  fields[#fields + 1] = 'until'
  fields[#fields + 1] = string.format('%.0f', till)
end
redis.call('HSET', KEYS[1], unpack(fields))
record[8] = now
return answer(record[4] and 'settled' or 'unsettled')
