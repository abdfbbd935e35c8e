-- Wrappers of BullMQ's functions for scripts that handle many jobs in one call (build.rs says which function gets
-- which wrapper).

-- Calls f once for each key and remembers the answer: nothing in this call changes it.
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

-- Wraps promoteDelayedJobs (repair.lua).
local function repairedOnce(f)
  return once(repairingDelayed(f))
end

-- Wraps addBaseMarkerIfNeeded: a worker that waits for the marker is woken after this call, once.
local function marked(f)
  local set = {}
  return function(markerKey, isPausedOrMaxed)
    if not isPausedOrMaxed and not set[markerKey] then
      set[markerKey] = true
      f(markerKey, isPausedOrMaxed)
    end
  end
end

-- Wraps getQueueMetadata: its answer is the same for all jobs, unless the queue limits how many run at a time.
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

-- Wraps the functions that remove old jobs after every job: they run once, after all jobs, which have the same
-- options.
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

-- Calls one for a job. An error is the answer for this job only; it is a table with one text.
local function answerOf(one, keys, args)
  local ok, answer = pcall(one, keys, args)
  if ok then
    return answer or 0
  end
  return {type(answer) == "table" and answer.err or tostring(answer)}
end
