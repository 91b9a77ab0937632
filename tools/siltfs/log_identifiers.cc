#include "tools/siltfs/log_identifiers.h"

#include <fmt/format.h>
#include <spdlog/details/os.h>
#include <spdlog/pattern_formatter.h>

#include <memory>
#include <string>

#include "tools/siltfs/message_table.h"

namespace siltfs {
namespace {

// Prints the identifier of the message in brackets, if it has one.
class IdentifierFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    const MessageRow* row =
        FindMessage(std::string_view(message.payload.data(), message.payload.size()));
    if (row == nullptr) return;
    const std::string text = fmt::format(" [{}]", row->id);
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<IdentifierFlag>();
  }
};

}  // namespace

void AddIdentifiers(spdlog::sinks::sink& sink, LogTarget target) {
  const bool is_system_log = target == LogTarget::kSystemLog;
  auto formatter = std::make_unique<spdlog::pattern_formatter>(
      spdlog::pattern_time_type::local, is_system_log ? "" : spdlog::details::os::default_eol);
  formatter->add_flag<IdentifierFlag>('*').set_pattern(
      is_system_log ? "%v%*" : "[%Y-%m-%d %H:%M:%S.%e] [%n] [%l] %v%*");
  sink.set_formatter(std::move(formatter));
}

}  // namespace siltfs
