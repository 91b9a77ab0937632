// Adds the identifiers of messages (message_table.h) to the lines of the daemon's log.
//
// Thread-safety: AddIdentifiers is called before the sink is used.
#pragma once

#include <spdlog/sinks/sink.h>

#include <cstdint>

namespace siltfs {

enum class LogTarget : uint8_t {
  kFile,       // a file or standard error: each line has the time, the name and the level
  kSystemLog,  // adds these by itself
};

// Makes the sink end each line that has a row in the table with the identifier, as in " [S1001]".
void AddIdentifiers(spdlog::sinks::sink& sink, LogTarget target);

}  // namespace siltfs
