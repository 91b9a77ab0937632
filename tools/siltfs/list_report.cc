#include "tools/siltfs/list_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "store/base/size_text.h"
#include "tools/siltfs/printable_text.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

constexpr size_t kColumns = 10;
using Row = std::array<std::string, kColumns>;

const Row kTitles = {"STORE", "LABEL",   "MOUNTPOINT", "SHOWS", "MODE",
                     "FILES", "LOGICAL", "STORED",     "RATIO", "HEALTH"};
// These columns hold numbers, which are aligned at the right.
constexpr size_t kFirstNumber = 5;
constexpr size_t kLastNumber = 8;
// Left out if no store has a label.
constexpr size_t kLabel = 1;

// The text of a value that is null if the daemon did not answer.
template <typename Format>
std::string Known(const Json& value, Format format) {
  return value.is_null() ? "-" : format(value);
}

Row RowOf(const Json& mount) {
  const auto size = [](const Json& bytes) { return FormatSize(bytes.get<uint64_t>()); };
  const Json& snapshot = mount.at("snapshot");
  std::string shows = "-";
  if (!snapshot.is_null()) {
    shows = "snapshot " + Printable(snapshot.get<std::string>());
  } else if (mount.at("answers") == true) {
    shows = "live files";
  }
  return {Printable(mount.at("store").get<std::string>()),
          Known(mount.at("label"),
                [](const Json& label) { return Printable(label.get<std::string>()); }),
          Printable(mount.at("mountpoint").get<std::string>()),
          shows,
          mount.at("read_only") == true ? "ro" : "rw",
          Known(mount.at("files"), [](const Json& files) { return files.dump(); }),
          Known(mount.at("logical_bytes"), size),
          Known(mount.at("stored_bytes"), size),
          Known(mount.at("total_ratio"),
                [](const Json& ratio) { return fmt::format("{:.2f}", ratio.get<double>()); }),
          mount.at("health").get<std::string>()};
}

}  // namespace

std::string FormatList(const Json& mounts) {
  if (mounts.empty()) return "";
  std::vector<Row> rows = {kTitles};
  for (const Json& mount : mounts) rows.push_back(RowOf(mount));
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const bool labels =
      std::ranges::any_of(mounts, [](const Json& mount) { return !mount.at("label").is_null(); });
  std::string text;
  for (const Row& row : rows) {
    for (size_t i = 0; i + 1 < kColumns; ++i) {
      if (i == kLabel && !labels) continue;
      const bool is_number = i >= kFirstNumber && i <= kLastNumber;
      text += is_number ? fmt::format("{:>{}}  ", row[i], widths[i])
                        : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    text += row[kColumns - 1] + "\n";
  }
  return text;
}

}  // namespace siltfs
