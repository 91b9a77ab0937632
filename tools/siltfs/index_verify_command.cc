// siltfs index verify
#include <fmt/ostream.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "fs/open/store_index.h"
#include "fs/open/store_layout.h"
#include "tools/siltfs/index_command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

// A JSON document lists at most this many findings, because it is made in memory. All findings are
// counted.
constexpr size_t kMostListed = 10'000;

struct IndexVerifyArguments {
  std::string place;
  bool json = false;
  bool quiet = false;
};

// Counts findings, and prints or keeps them.
class Findings {
 public:
  Findings(bool json, std::ostream& out, LongCommand& command)
      : json_(json), out_(out), command_(command) {}

  void Add(const IndexFinding& finding) {
    ++count_;
    if (!json_) {
      command_.Print([&] { out_ << finding.code << ": " << Printable(finding.text) << "\n"; });
    } else if (listed_.size() < kMostListed) {
      listed_.push_back({{"code", finding.code},
                         {"path", finding.path},
                         {"offset", finding.offset ? Json(*finding.offset) : Json()},
                         {"text", finding.text}});
    }
  }

  uint64_t count() const { return count_; }
  const Json& listed() const { return listed_; }

 private:
  const bool json_;
  std::ostream& out_;
  LongCommand& command_;
  uint64_t count_ = 0;
  Json listed_ = Json::array();
};

Status Verify(const StoreIndex& opened, const std::string& store, Findings& findings) {
  ChunkIndex& index = *opened.index;
  if (opened.rebuild_interrupted) {
    const std::string path = IndexPath(store);
    findings.Add({.code = "rebuild-interrupted",
                  .path = path,
                  .offset = std::nullopt,
                  .text = InterruptedRebuild(path)});
  }
  // ChunkIndex::Verify does not report the pages that were dropped when the index was opened. So
  // this function reports them.
  const uint64_t lost = index.stats().damaged_pages;
  if (lost > 0) {
    const std::string path = IndexPath(store);
    findings.Add({.code = "page-missing",
                  .path = path,
                  .offset = std::nullopt,
                  .text = fmt::format("{}: pages that were durable are damaged or missing, {} in "
                                      "all; mounting puts their entries again",
                                      path, lost)});
  }
  return index.Verify([&](const IndexFinding& finding) { findings.Add(finding); });
}

ExitCode RunIndexVerify(const IndexVerifyArguments& arguments, Surroundings& surroundings) {
  const Result<std::string> store = StoreAt(arguments.place);
  if (!store.ok()) return Fail(surroundings, store.status());
  const auto command = LongCommand::Begin(
      surroundings, {.command = "index verify", .subject = *store, .quiet = arguments.quiet});
  if (!command.ok()) return Fail(surroundings, command.status());
  // The index offers no interruption, and the command writes nothing.
  (*command)->OnInterruption([&] {
    EndProcess(Fail(surroundings, Status(StatusCode::kInterrupted,
                                         "was interrupted; nothing has changed, and the list of "
                                         "findings is not complete")
                                      .At(*store)));
  });
  const Result<StoreIndex> opened =
      OpenWhenFree(*store, [&] { return OpenStoreIndexReadOnly(surroundings.env, *store); });
  if (!opened.ok()) {
    (*command)->End();
    return Fail(surroundings, ExplainLock(opened.status(), *store));
  }
  Findings findings(arguments.json, surroundings.out, **command);
  const Status verified = Verify(*opened, *store, findings);
  (*command)->OnInterruption({});
  (*command)->End();
  if (!verified.ok()) {
    SayFailure(surroundings, verified.ToString(),
               {{"store", *store},
                {"clean", nullptr},
                {"finding_count", findings.count()},
                {"findings", findings.listed()}},
               ExitCodeOf(verified));
    return ExitCodeOf(verified);
  }
  const IndexStats stats = opened->index->stats();
  if (arguments.json) {
    PrintJson(surroundings, {{"store", *store},
                             {"engine", stats.engine},
                             {"entries", stats.entries},
                             {"component_stores", stats.stores.size()},
                             {"clean", findings.count() == 0},
                             {"finding_count", findings.count()},
                             {"findings", findings.listed()}});
  } else if (findings.count() == 0) {
    surroundings.out << fmt::format("clean: {} entries in {} stores\n", stats.entries,
                                    stats.stores.size());
  }
  return findings.count() == 0 ? ExitCode::kDone : ExitCode::kDamaged;
}

}  // namespace

std::function<ExitCode()> ConfigureIndexVerify(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<IndexVerifyArguments>();
  app.add_option("STORE", arguments->place, "The directory of a store that is not mounted")
      ->required();
  app.add_flag("--json", arguments->json,
               "Print one JSON document instead of one line for each finding");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return RunIndexVerify(*arguments, surroundings); };
}

}  // namespace siltfs
