// siltfs settle
#include <fmt/format.h>

#include <memory>

#include "fs/control/recompression_json.h"
#include "fs/interface/file_system.h"
#include "store/base/size_text.h"
#include "store/env/process.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/statistics_command.h"
#include "tools/siltfs/store_holder.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

// Opens the store, recompresses, and closes the store as an unmount does, even if recompression
// failed.
Result<Json> SettleUnmounted(Env& env, const std::string& store) {
  PrepareForStore();
  FileSystemOptions options;
  options.store = store;
  options.keep_reserve = true;
  auto opened = FileSystem::Open(env, options);
  if (!opened.ok()) {
    return ExplainReadOnlyMedium(std::move(opened).status(), store,
                                 "settle rewrites segments and needs a writable one");
  }
  const std::unique_ptr<FileSystem> file_system = std::move(*opened);
  auto outcome = RecompressStore(file_system->maintenance(), store);
  const Status closed = file_system->Close();
  if (!outcome.ok()) {
    closed.IgnoreError("the first failure is reported");
    return outcome;
  }
  SILTFS_RETURN_IF_ERROR(closed);
  return outcome;
}

std::string Format(const Json& outcome) {
  const auto number = [&](const char* key) { return outcome.at(key).get<uint64_t>(); };
  const std::string deltas =
      number("delta_chunks") == 0
          ? std::string()
          : fmt::format("; {} chunks became deltas, which saves {}", number("delta_chunks"),
                        FormatSize(number("delta_saved_bytes")));
  return fmt::format(
      "{} segments recompressed, {} kept because this saves nothing, {} could not be recompressed: "
      "{} became {}; {} await recompression{}\n",
      number("segments_rewritten"), number("segments_kept"), number("segments_left"),
      FormatSize(number("bytes_before")), FormatSize(number("bytes_after")),
      FormatSize(number("awaiting_recompression_bytes")), deltas);
}

}  // namespace

std::function<ExitCode()> ConfigureSettle(CLI::App& app, Surroundings& surroundings) {
  return ConfigureStatistics(app, surroundings,
                             {.question = "settle", .read = SettleUnmounted, .format = Format});
}

}  // namespace siltfs
