-- What functions of BullMQ's scripts become when one call is about many jobs (see many.rs).

-- Asked again about the same key, it gives the same answer: nothing in this call changes it.
local function once(f)
  local known = {}
  return function(key, ...)
    local answer = known[key]
    if not answer then
      answer = {f(key, ...)}
      known[key] = answer
    end
    return answer[1]
  end
end

-- For promoteDelayedJobs: see mend.lua.
local function mendedOnce(f)
  return once(mended(f))
end

-- For addBaseMarkerIfNeeded: whoever waits for the marker is served after this call, once.
local function marked(f)
  local set = {}
  return function(markerKey, isPausedOrMaxed)
    if not isPausedOrMaxed and not set[markerKey] then
      set[markerKey] = true
      f(markerKey, isPausedOrMaxed)
    end
  end
end

-- For getQueueMetadata: the same for all jobs, unless the queue counts how many run at a time.
local function unlessCounted(f)
  local known, counted
  return function(metaKey, activeKey, waitKey)
    if counted == nil then
      counted = rcall("HEXISTS", metaKey, "concurrency") == 1
    end
    if counted then
      return f(metaKey, activeKey, waitKey)
    end
    known = known or {f(metaKey, activeKey, waitKey)}
    return known[1], known[2], known[3]
  end
end

-- What clears up after every job clears up after all of them: they have the same options.
local putOff = {}
local function afterAll(f)
  local noted = false
  return function(...)
    if not noted then
      noted = true
      putOff[#putOff + 1] = {f, ...}
    end
  end
end

-- An error is about its own job and must not take away the answers for the others.
local function answerOf(one, keys, args)
  local ok, answer = pcall(one, keys, args)
  if ok then
    return answer or 0
  end
  return {type(answer) == "table" and answer.err or tostring(answer)}
end
