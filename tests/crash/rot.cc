#include "tests/crash/rot.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "store/env/files.h"
#include "tests/crash/sequence.h"
#include "tests/crash/visible_tree.h"

namespace siltfs::testing {
namespace {

constexpr std::chrono::hours kNever{1};

// The visible state of a store: its trees as text, or its report of damage.
struct View {
  std::string trees;
  std::vector<uint64_t> digests;
  std::string trouble;   // the store's report of damage
  bool deltas = false;   // whether the store has deltas
  bool refused = false;  // the report has another code than kCorruption or kNeedsNewer
};

View Look(Env& device, size_t threads) {
  View view;
  FindingLog findings;
  auto fail = [&view](const Status& status) {
    view.trouble += status.ToString() + "\n";
    view.refused = !status.Is(StatusCode::kCorruption) && !status.Is(StatusCode::kNeedsNewer);
  };
  auto fs = OpenStore(device, kNever, findings);
  if (!fs.ok()) {
    fail(fs.status());
    return view;
  }
  for (unsigned thread = 0; thread < threads; ++thread) {
    auto tree = DescribeTree(**fs, thread, TimesWith(threads));
    if (!tree.ok()) {
      fail(tree.status());
      break;
    }
    view.trees += *tree;
    view.digests.push_back(DigestOf(*tree));
  }
  const auto deltas = HasDeltas(**fs);
  if (!deltas.ok()) fail(deltas.status());
  view.deltas = deltas.ok() && *deltas;
  view.trouble += findings.Take();
  return view;
}

// Collects all non-empty files by kind. The kind of a file is its name without digits.
Status CollectFiles(Env& device, const std::string& directory,
                    std::map<std::string, std::vector<std::string>>& by_kind) {
  SILTFS_ASSIGN_OR_RETURN(const auto entries, device.ListDirectory(directory));
  for (const DirectoryEntry& entry : entries) {
    const std::string path = JoinPath(directory, entry.name);
    if (entry.type == FileType::kDirectory) {
      SILTFS_RETURN_IF_ERROR(CollectFiles(device, path, by_kind));
      continue;
    }
    SILTFS_ASSIGN_OR_RETURN(const FileInfo info, device.GetFileInfo(path));
    std::string kind;
    for (const char c : path) {
      if (c < '0' || c > '9') kind += c;
    }
    if (info.size > 0) by_kind[kind].push_back(path);
  }
  return Status::Ok();
}

Result<std::string> FlipByte(Env& device, const std::string& path, Random& random) {
  SILTFS_ASSIGN_OR_RETURN(auto file, device.OpenFile(path, {.mode = OpenMode::kReadWrite}));
  SILTFS_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  const uint64_t offset = random.Below(size);
  Bytes byte(1);
  SILTFS_RETURN_IF_ERROR(ReadExactly(*file, offset, byte));
  const uint8_t before = byte[0];
  byte[0] ^= static_cast<uint8_t>(random.OneIn(2) ? 1U << random.Below(8) : 1 + random.Below(255));
  SILTFS_RETURN_IF_ERROR(file->Write(offset, byte));
  SILTFS_RETURN_IF_ERROR(file->Sync());
  return fmt::format("{}, byte {} of {}: {:02x} became {:02x}", path, offset, size, before,
                     byte[0]);
}

Result<std::string> Rot(SimEnv& device, Random& random) {
  std::map<std::string, std::vector<std::string>> by_kind;
  SILTFS_RETURN_IF_ERROR(CollectFiles(device, kStorePath, by_kind));
  auto kind = by_kind.begin();
  std::advance(kind, static_cast<ptrdiff_t>(random.Below(by_kind.size())));
  return FlipByte(device, kind->second[random.Below(kind->second.size())], random);
}

}  // namespace

RotOutcome CheckRot(const SimEnv& device, const History& history, size_t cut, Random& random) {
  RotOutcome outcome;
  const View sound = Look(*device.Fork(), history.threads());
  const auto rotten = device.Fork();
  auto place = Rot(*rotten, random);
  if (!sound.trouble.empty() || !place.ok()) {
    outcome.problem = sound.trouble + (place.ok() ? "" : place.status().ToString());
    return outcome;
  }
  outcome.place = *place;
  outcome.deltas = sound.deltas;
  const View seen = Look(*rotten, history.threads());
  outcome.noticed = !seen.trouble.empty();
  if (seen.refused) outcome.problem = "is not reported as damage: " + seen.trouble;
  if (!outcome.noticed && seen.trees != sound.trees) {
    const auto legal = history.Match(cut, seen.digests);
    if (!legal.ok()) {
      outcome.problem = fmt::format("shows another state without a report ({}):\n{}instead of\n{}",
                                    legal.status().ToString(), seen.trees, sound.trees);
    }
  }
  return outcome;
}

}  // namespace siltfs::testing
