// siltfs settle
#include <fmt/format.h>

#include <memory>

#include "fs/control/settle_json.h"
#include "store/base/size_text.h"
#include "store/env/process.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/figures_command.h"
#include "tools/siltfs/store_holder.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

// Opened, and closed as by an unmount, whatever came of the settling.
Result<Json> SettleUnmounted(Env& env, const std::string& store) {
  PrepareForStore();
  FileSystemOptions options;
  options.store = store;
  options.keep_reserve = true;
  auto opened = FileSystem::Open(env, options);
  if (!opened.ok()) {
    return ExplainReadOnlyMedium(std::move(opened).status(), store,
                                 "settle rewrites what awaits it and needs a writable one");
  }
  const std::unique_ptr<FileSystem> file_system = std::move(*opened);
  auto outcome = SettleStore(*file_system, store);
  const Status closed = file_system->Close();
  if (!outcome.ok()) {
    closed.IgnoreError("the first failure is what is told");
    return outcome;
  }
  SILTFS_RETURN_IF_ERROR(closed);
  return outcome;
}

std::string Format(const Json& outcome) {
  const auto number = [&](const char* key) { return outcome.at(key).get<uint64_t>(); };
  return fmt::format(
      "{} segments recompressed, {} kept as they were, {} left alone: {} became {}; {} await it\n",
      number("segments_rewritten"), number("segments_kept"), number("segments_left"),
      FormatSize(number("bytes_before")), FormatSize(number("bytes_after")),
      FormatSize(number("awaiting_recompression_bytes")));
}

}  // namespace

std::function<ExitCode()> ConfigureSettle(CLI::App& app, Surroundings& surroundings) {
  return ConfigureFigures(app, surroundings,
                          {.question = "settle", .read = SettleUnmounted, .format = Format});
}

}  // namespace siltfs
