#include "tools/siltfs/daemon_log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>
#include <syslog.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "store/env/log_file.h"
#include "store/env/process.h"
#include "tools/siltfs/log_identifiers.h"
#include "tools/siltfs/printable_text.h"

namespace siltfs {
namespace {

constexpr const char* kName = "siltfs";

// spdlog passes a failure to write to its own handler, which prints it at most once a second.
void Throw(const Status& status) {
  if (!status.ok()) throw spdlog::spdlog_ex(status.ToString());
}

class FileSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FileSink(std::unique_ptr<LogFile> file) : file_(std::move(file)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    Throw(file_->Append({line.data(), line.size()}));
  }
  void flush_() override {}  // nothing is buffered

  const std::unique_ptr<LogFile> file_;
};

int PriorityOf(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::critical:
      return LOG_CRIT;
    case spdlog::level::err:
      return LOG_ERR;
    case spdlog::level::warn:
      return LOG_WARNING;
    case spdlog::level::info:
      return LOG_INFO;
    default:
      return LOG_DEBUG;
  }
}

std::string CodeText(StatusCode code) {
  std::string text(StatusCodeName(code));
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  std::replace_if(text.begin(), text.end(), std::not_fn(is_letter), '_');
  return text;
}

class JournalSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  JournalSink(std::unique_ptr<JournalSocket> socket, const DaemonOptions& options)
      : socket_(std::move(socket)), store_(options.store), mountpoint_(options.mountpoint) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::vector<JournalSocket::Field> fields = {
        {"MESSAGE", std::string(line.data(), line.size())},
        {"PRIORITY", std::to_string(PriorityOf(message.level))},
        {"SYSLOG_IDENTIFIER", kName},
        {"SYSLOG_FACILITY", std::to_string(LOG_FAC(LOG_DAEMON))},
        {"SYSLOG_PID", std::to_string(CurrentProcessId())},
        {"SILTFS_STORE", store_},
        {"SILTFS_MOUNTPOINT", mountpoint_}};
    if (const Notice* notice = NoticeScope::Current()) AddFields(*notice, fields);
    Throw(socket_->Send(fields));
  }
  void flush_() override {}  // nothing is buffered

  static void AddFields(const Notice& notice, std::vector<JournalSocket::Field>& fields) {
    if (notice.code) fields.emplace_back("SILTFS_CODE", CodeText(*notice.code));
    if (!notice.path.empty()) fields.emplace_back("SILTFS_PATH", notice.path);
    if (notice.offset) fields.emplace_back("SILTFS_OFFSET", std::to_string(*notice.offset));
  }

  const std::unique_ptr<JournalSocket> socket_;
  const std::string store_;
  const std::string mountpoint_;
};

spdlog::sink_ptr WithIdentifiers(spdlog::sink_ptr sink, LogTarget target) {
  AddIdentifiers(*sink, target);
  return sink;
}

spdlog::sink_ptr MakeErrorSink() {
  return WithIdentifiers(std::make_shared<spdlog::sinks::stderr_sink_mt>(), LogTarget::kFile);
}

// Null if there is no journal.
spdlog::sink_ptr FindJournal(const DaemonOptions& options) {
  auto socket = JournalSocket::Open();
  if (socket.ok()) return MakeJournalSink(*std::move(socket), options);
  socket.status().IgnoreError("the system log is used instead");
  return nullptr;
}

Result<spdlog::sink_ptr> MakeSink(const DaemonOptions& options) {
  if (options.mount.log_file) {
    SILTFS_ASSIGN_OR_RETURN(auto file, LogFile::Open(*options.mount.log_file));
    return WithIdentifiers(std::make_shared<FileSink>(std::move(file)), LogTarget::kFile);
  }
  if (options.foreground && !StandardErrorIsJournal()) return MakeErrorSink();
  if (spdlog::sink_ptr journal = FindJournal(options)) return journal;
  if (options.foreground) return MakeErrorSink();
  return WithIdentifiers(
      std::make_shared<spdlog::sinks::syslog_sink_mt>(kName, LOG_PID, LOG_DAEMON, true),
      LogTarget::kSystemLog);
}

}  // namespace

Result<std::shared_ptr<spdlog::logger>> MakeDaemonLog(const DaemonOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(spdlog::sink_ptr sink, MakeSink(options));
  auto log = std::make_shared<spdlog::logger>(kName, std::move(sink));
  log->set_level(options.mount.debug ? spdlog::level::debug : spdlog::level::info);
  log->flush_on(spdlog::level::info);
  spdlog::set_default_logger(log);  // libfuse's messages go there
  return log;
}

spdlog::sink_ptr MakeJournalSink(std::unique_ptr<JournalSocket> socket,
                                 const DaemonOptions& options) {
  return WithIdentifiers(std::make_shared<JournalSink>(std::move(socket), options),
                         LogTarget::kSystemLog);
}

void LogNotice(spdlog::logger& log, const Notice& notice) {
  const NoticeScope scope(notice);
  log.error("{}", Printable(notice.sentence));
}

}  // namespace siltfs
