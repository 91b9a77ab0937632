#include "fs/repair/salvage_findings.h"

#include <fmt/format.h>

#include <algorithm>

namespace siltfs {
namespace {

constexpr const char* kCode = "metadata-salvaged";
constexpr size_t kMostFiles = 1000;

std::string Describe(const SalvageLoss& loss) {
  if (loss.missing) return "is missing or cannot be opened: its whole content is lost";
  if (loss.expected && *loss.expected > loss.read)
    return fmt::format("{} of its {} changes are lost", *loss.expected - loss.read, *loss.expected);
  return fmt::format("{} bytes are damaged; the number of changes in them is not known",
                     loss.bytes);
}

std::string Describe(const RebuiltMetadata& rebuilt) {
  if (rebuilt.resumed)
    return "was salvaged by an interrupted repair; the earlier report may list the losses";
  const MetadataSalvage& salvaged = rebuilt.salvaged;
  std::string text = fmt::format("was rebuilt from {} readable records in {} tables",
                                 salvaged.entries, salvaged.tables);
  if (salvaged.losses.empty()) return text + "; no losses are known";
  const auto known = std::all_of(
      salvaged.losses.begin(), salvaged.losses.end(),
      [](const SalvageLoss& loss) { return !loss.missing && loss.expected.has_value(); });
  uint64_t lost = 0;
  for (const SalvageLoss& loss : salvaged.losses)
    lost += loss.expected.value_or(loss.read) - loss.read;
  text += known ? fmt::format("; {} changes are lost", lost)
                : fmt::format("; more than {} changes are lost", lost);
  return text + ", and older records, if they existed, replaced the lost ones";
}

}  // namespace

std::vector<Finding> FindingsOf(const RebuiltMetadata& rebuilt, const std::string& path) {
  std::vector<Finding> findings;
  const auto add = [&findings](const std::string& where, std::string message) {
    findings.push_back({.code = kCode, .path = where, .message = std::move(message)});
  };
  add(path, Describe(rebuilt));
  for (const SalvageLoss& loss : rebuilt.salvaged.losses) {
    if (findings.size() > kMostFiles) break;
    add(loss.path, Describe(loss));
  }
  return findings;
}

}  // namespace siltfs
