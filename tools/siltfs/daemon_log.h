// The log of a daemon: the journal of systemd, the system log, standard error, or a file.
//
// The journal gets these fields with each line, beside those of systemd.journal-fields(7):
// SILTFS_STORE and SILTFS_MOUNTPOINT; and if the line is about a place, SILTFS_CODE (such as
// "corruption"), SILTFS_PATH and SILTFS_OFFSET.
//
// Thread-safety: loggers from any thread.
#pragma once

#include <memory>

#include <spdlog/logger.h>
#include <spdlog/sinks/sink.h>

#include "store/base/notice.h"
#include "store/base/result.h"
#include "store/env/journal_socket.h"
#include "tools/siltfs/daemon.h"

namespace siltfs {

// Chooses the log: a file if the options name one; standard error in the foreground, unless it
// leads to the journal; otherwise the journal if there is one, and the system log if not.
Result<std::shared_ptr<spdlog::logger>> MakeDaemonLog(const DaemonOptions& options);

// For tests: the sink for a journal.
spdlog::sink_ptr MakeJournalSink(std::unique_ptr<JournalSocket> socket,
                                 const DaemonOptions& options);

// Logs the notice as an error, with its fields.
void LogNotice(spdlog::logger& log, const Notice& notice);

}  // namespace siltfs
