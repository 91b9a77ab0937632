#include "fs/fuse/fuse_log_capture.h"

#include <spdlog/spdlog.h>

#include <cstdarg>
#include <cstdio>
#include <string_view>

#include "fs/fuse/fuse_api.h"

namespace siltfs::fuse {
namespace {

thread_local std::string* captured = nullptr;  // of this thread's capture

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

spdlog::level::level_enum LevelOf(fuse_log_level level) {
  if (level <= FUSE_LOG_ERR) return spdlog::level::err;
  if (level == FUSE_LOG_WARNING) return spdlog::level::warn;
  return level == FUSE_LOG_DEBUG ? spdlog::level::debug : spdlog::level::info;
}

void Log(fuse_log_level level, const char* format, va_list arguments) {
  char line[1024];
  const int length = std::vsnprintf(line, sizeof line, format, arguments);
  if (length <= 0) return;
  const std::string_view text = Trimmed(line);
  if (captured == nullptr) {
    spdlog::default_logger_raw()->log(LevelOf(level), "{}", text);
    return;
  }
  if (!captured->empty()) captured->append("; ");
  captured->append(text);
}

}  // namespace

FuseLogCapture::FuseLogCapture() {
  fuse_set_log_func(Log);
  captured = &text_;
}

FuseLogCapture::~FuseLogCapture() { captured = nullptr; }

}  // namespace siltfs::fuse
