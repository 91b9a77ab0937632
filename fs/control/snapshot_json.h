// Makes, lists, renames and removes snapshots on request, and returns the result as JSON. Only this
// code defines the keys of `siltfs snapshot ... --json`, a stable interface.
//
//   arguments                                    result
//   {"action":"create","name":N}                 the snapshot
//   {"action":"list","sizes":B}                  {"snapshots":[...]}, the oldest one first
//   {"action":"show","name":N,"sizes":B}         the snapshot
//   {"action":"rename","name":N,"new_name":M}    the snapshot
//   {"action":"delete","name":N}                 the snapshot as it was
//   {"action":"rollback","name":N,"keep_as":M}   {"snapshot":N,"kept":the snapshot M}
//
// A snapshot is {"name","number","time","created","commit","files","directories","logical_bytes",
// "received_from","mounted"}. "time" is as in ISO 8601, in UTC; "created" is the same in seconds
// since 1970. "received_from" is the UUID of the store that has made the snapshot, or null if it is
// this one. "mounted" says whether it is in use, so that it cannot be deleted. If "sizes" is
// true, a snapshot also has {"new_bytes","freed_bytes"}. These take a walk through all metadata
// (Snapshots::Measure). Without "sizes" there is no walk.
//
// Thread-safety: every call from any thread. Errors: those of Snapshots; kInvalidArgument for
// malformed arguments.
#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "fs/interface/file_system.h"
#include "fs/interface/kernel_cache.h"
#include "store/base/result.h"

namespace siltfs {

// OK if the arguments can be sent without a change: all texts are UTF-8.
Status CheckSnapshotArguments(const nlohmann::json& arguments);

// Makes the kernel forget that there is no snapshot of this name, or another one. `cache` may be
// null.
void ForgetSnapshotName(KernelCache* cache, const std::string& name);

// `cache`: the kernel's, which must learn of changed names; null if the store is not mounted.
// `check`: called at intervals while sizes are measured, which end if it fails; may be empty.
Result<nlohmann::json> RunSnapshotCommand(FileSystem& file_system, KernelCache* cache,
                                          const nlohmann::json& arguments,
                                          const std::function<Status()>& check);

}  // namespace siltfs
