// The files of the logs of a SILT index: the only place where their names are made and parsed.
// Functions only, safe to call from any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "index/silt/store_manifest.h"
#include "store/env/env.h"

namespace siltfs {

std::string LogFileName(uint64_t id);
std::optional<uint64_t> ParseLogFileName(std::string_view name);

// A new, empty log; takes the place of one that a crash or failure left behind. Its name is not
// durable yet.
Result<std::shared_ptr<File>> CreateLogFile(Env& env, const std::string& directory, uint64_t id);

// Null if there is no such file.
Result<std::shared_ptr<File>> OpenLogFile(Env& env, const std::string& directory, uint64_t id,
                                          OpenMode mode);

// The logs in `directory` that `manifest` does not list: left behind by a crash.
Result<std::vector<std::string>> FindOrphanedLogs(Env& env, const std::string& directory,
                                                  const StoreManifest& manifest);

}  // namespace siltfs
