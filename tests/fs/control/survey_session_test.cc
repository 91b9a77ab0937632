// The document of a survey, and the session that sends it.
#include "fs/control/survey_session.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "fs/control/client.h"
#include "fs/control/server.h"
#include "fs/control/survey_json.h"
#include "fs/interface/stats.h"
#include "tests/support/catch.h"
#include "tests/support/memory_maintenance.h"
#include "tests/support/temporary_directory.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

class SlowMaintenance final : public testing::MemoryMaintenance {
 public:
  SlowMaintenance() : MemoryMaintenance([] { return FileSystemStats(); }) {}

  // Reports progress until `on_progress` fails, or `rounds` is over.
  Result<StoreSurvey> Survey(const SurveyProgressFunction& on_progress) override {
    for (int i = 0; i < rounds; ++i) {
      Status going = on_progress({.step = 2, .name = "recipes", .done = 7, .total = 9});
      if (!going.ok()) {
        ended_early = true;
        return going;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    StoreSurvey survey;
    survey.chunks.references = 42;
    return survey;
  }
  std::atomic<int> rounds{1};
  std::atomic<bool> ended_early{false};
};

class Daemon {
 public:
  explicit Daemon(StoreMaintenance& maintenance) {
    control::ServerOptions options{.store = directory_.path(),
                                   .own_uid = 0,
                                   .identity = [] { return Json::object(); },
                                   .handlers = {}};
    options.sessions = {{kSurveySession,
                         {.check = [](const Json&) { return Status::Ok(); },
                          .greeting = {{"version", kSurveyVersion}},
                          .run =
                              [&maintenance](LocalStream& stream, const Json&,
                                             const std::function<bool()>& stopped) {
                                return ServeSurvey(
                                    maintenance, "/store",
                                    {.pid = 1, .mountpoint = "/mnt", .transport = ""}, stream,
                                    stopped);
                              }}}};
    auto started = control::Server::Start(std::move(options));
    REQUIRE_OK(started);
    server_ = std::move(*started);
  }
  control::Server& server() { return *server_; }
  Result<Json> Ask(const SurveyProgressFunction& on_progress) {
    auto session = control::OpenSession({.store = directory_.path()}, kSurveySession);
    REQUIRE_OK(session);
    REQUIRE(session->greeting.at("version") == kSurveyVersion);
    return ReceiveSurvey(*session->stream, on_progress);
  }

 private:
  testing::TemporaryDirectory directory_;
  std::unique_ptr<control::Server> server_;
};

Status Fine(const SurveyProgress&) { return Status::Ok(); }

}  // namespace

TEST_CASE("progress goes round, and a line that is no message is refused") {
  const std::string line =
      EncodeSurveyProgress({.step = 3, .name = "chunks", .done = 4, .total = 5});
  const auto progress = DecodeSurveyProgress(line);
  REQUIRE_OK(progress);
  REQUIRE(*progress);
  CHECK((*progress)->step == 3);
  CHECK((*progress)->name == "chunks");
  CHECK((*progress)->done == 4);
  CHECK((*progress)->total == 5);
  const auto result = DecodeSurveyProgress(R"({"ok":true,"result":null})");
  REQUIRE_OK(result);
  CHECK_FALSE(*result);
  for (const char* bad :
       {"", "[]", "{}", R"({"step":1})", R"({"step":-1,"name":"files","done":1,"total":1})",
        R"({"step":1,"name":7,"done":1,"total":1})"}) {
    INFO(bad);
    REQUIRE_CODE(DecodeSurveyProgress(bad), kInvalidArgument);
  }
}

TEST_CASE(
    "the document leaves out empty classes, and joins segments into a bounded number of cells") {
  StoreSurvey survey;
  ChunkSurvey& chunks = survey.chunks;
  chunks.sample_bits = 3;
  chunks.files = {10, 1000};
  chunks.lengths[LengthClassOf(8192)] = {10, 1000};
  chunks.shared[4] = {2, 5};
  for (uint32_t id = 1; id <= 3 * kMostCells; ++id) {
    chunks.segments.push_back({.id = id,
                               .nodes = id == 1,
                               .sealed = id != 2,
                               .bytes = 100,
                               .chunks = 8,
                               .indexed = 4,
                               .live = id % 3 == 0 ? 4u : 1u});
  }
  survey.sizes.push_back({.taken_ns = 1'500'000'000, .logical_bytes = 7});
  survey.scrubs.push_back({.ended_ns = 2'500'000'000, .damaged_chunks = 3});
  const Json document = ToJson(survey);
  CHECK(document.at("scale") == 8);
  REQUIRE(document.at("lengths").size() == 1);
  CHECK(document.at("lengths")[0] ==
        Json{{"from", 8192}, {"to", 10240}, {"chunks", 10}, {"bytes", 1000}});
  REQUIRE(document.at("shared").size() == 1);
  CHECK(document.at("shared")[0].at("from") == 5);
  CHECK(document.at("shared")[0].at("to") == 9);
  const Json& segments = document.at("segments");
  CHECK(segments.at("count") == 3 * kMostCells);
  CHECK(segments.at("per_cell") == 3);
  REQUIRE(segments.at("cells").size() == kMostCells);
  const Json& cell = segments.at("cells")[0];
  CHECK(cell.at("first") == 1);
  CHECK(cell.at("last") == 3);
  CHECK(cell.at("bytes") == 300);
  CHECK(cell.at("nodes") == 1);
  CHECK(cell.at("open") == 1);
  CHECK(cell.at("live").get<double>() == Approx(0.5));
  CHECK(segments.at("live_bytes").get<double>() == Approx(150.0 * kMostCells));
  CHECK(document.at("sizes")[0].at("taken_at") == 1.5);
  CHECK(document.at("scrubs")[0].at("damaged_chunks") == 3);
}

TEST_CASE("a segment whose use is not known makes its cell unknown") {
  StoreSurvey survey;
  survey.chunks.not_indexed = 1;
  survey.chunks.segments = {{.id = 1, .bytes = 10, .chunks = 2, .indexed = 2, .live = 1},
                            {.id = 2, .bytes = 10, .chunks = 2}};
  const Json segments = ToJson(survey).at("segments");
  CHECK(segments.at("cells")[0].at("live") == 0.5);
  CHECK(segments.at("cells")[1].at("live").is_null());
  CHECK(segments.at("live_bytes").is_null());
}

TEST_CASE("a client gets the progress and then the document") {
  SlowMaintenance maintenance;
  maintenance.rounds = 600;
  Daemon daemon(maintenance);
  uint64_t most = 0;
  const auto document = daemon.Ask([&](const SurveyProgress& progress) {
    most = std::max(most, progress.done);
    return Status::Ok();
  });
  REQUIRE_OK(document);
  CHECK(most == 7);
  CHECK(document->at("version") == kSurveyVersion);
  CHECK(document->at("survey").at("references") == 42);
  CHECK(document->at("stats").at("store") == "/store");
  CHECK(document->at("stats").at("mountpoint") == "/mnt");
  CHECK(document->at("index").contains("kinds"));
}

TEST_CASE("a client that leaves ends the survey") {
  SlowMaintenance maintenance;
  maintenance.rounds = 1'000'000;
  Daemon daemon(maintenance);
  REQUIRE_CODE(
      daemon.Ask([](const SurveyProgress&) { return Status(StatusCode::kInterrupted, "enough"); }),
      kInterrupted);
  while (!maintenance.ended_early) std::this_thread::yield();
}

TEST_CASE("the end of the daemon ends a survey") {
  SlowMaintenance maintenance;
  maintenance.rounds = 1'000'000;
  Daemon daemon(maintenance);
  std::atomic<bool> begun{false};
  std::thread client([&] {
    const auto ended = daemon.Ask([&](const SurveyProgress& progress) {
      if (progress.step == 2) begun = true;
      return Fine(progress);
    });
    CHECK(ended.status().Is(StatusCode::kAborted));
  });
  while (!begun) std::this_thread::yield();
  daemon.server().StopCommands();
  client.join();
}

}  // namespace siltfs
