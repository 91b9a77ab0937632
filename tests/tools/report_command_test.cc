// siltfs report, in-process, on stores that are not mounted.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>

#include "fs/control/index_json.h"
#include "fs/control/survey_json.h"
#include "fs/interface/file_system.h"
#include "fs/interface/stats.h"
#include "store/base/random.h"
#include "store/env/posix_env.h"
#include "tests/support/catch.h"
#include "tests/support/read_text.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/run_in_process.h"
#include "tests/tools/some_statistics.h"
#include "tools/report/store_report.h"

namespace siltfs::testing {
namespace {

using Json = nlohmann::json;

void MakeStore(const std::string& path) {
  REQUIRE(Run({"siltfs", "mkfs", path}).code == 0);
  const auto env = NewPosixEnv();
  FileSystemOptions options;
  options.store = path;
  auto opened = FileSystem::Open(*env, options);
  REQUIRE_OK(opened);
  FileSystem& fs = **opened;
  Random random(1);
  Bytes data(500'000);
  random.Fill(data);
  for (const char* name : {"a", "b", "c"}) {
    const auto made = fs.CreateFile(kRootInode, name, 0644, Caller{});
    REQUIRE_OK(made);
    REQUIRE_OK(fs.Write(made->inode, 0, data, {}, {}));
    fs.ReleaseFile(made->inode);
  }
  REQUIRE_OK(fs.Close());
}

std::string TextOf(const std::string& path) {
  const auto text = ReadTextOf(path);
  REQUIRE(text);
  return *text;
}

// The sum of data-value in the wide layout of a plot.
uint64_t SumIn(const std::string& page, const std::string& plot) {
  const size_t begin = page.find("data-plot=\"" + plot + "\"");
  REQUIRE(begin != std::string::npos);
  const std::string svg = page.substr(begin, page.find("</svg>", begin) - begin);
  const std::regex pattern("data-value=\"([0-9]+)\"");
  uint64_t sum = 0;
  for (std::sregex_iterator at(svg.begin(), svg.end(), pattern), end; at != end; ++at)
    sum += std::stoull((*at)[1]);
  return sum;
}

Json SomeDocument() {
  StoreSurvey survey;
  ChunkSurvey& chunks = survey.chunks;
  chunks.files = {30, 300'000};
  chunks.references = 100;
  chunks.lengths[LengthClassOf(8192)] = {20, 200'000};
  chunks.lengths[LengthClassOf(16384)] = {10, 100'000};
  chunks.shared[0] = {10, 100'000};
  chunks.shared[4] = {20, 200'000};
  chunks.segments = {
      {.id = 1, .sealed = true, .bytes = 1000, .chunks = 10, .indexed = 10, .live = 5}};
  for (int64_t day = 1; day <= 3; ++day) {
    survey.sizes.push_back(
        {.taken_ns = static_cast<int64_t>(kSomeTime * 1e9) - day * 86'400'000'000'000,
         .logical_bytes = 100,
         .index_memory_bytes = 5,
         .index_entries = 10});
  }
  std::reverse(survey.sizes.begin(), survey.sizes.end());
  survey.scrubs.push_back(
      {.ended_ns = static_cast<int64_t>((kSomeTime - 3600) * 1e9), .chunks = 4});
  FileSystemStats stats = SomeStatistics();
  stats.index.entries = 10;
  return {{"version", kSurveyVersion},
          {"stats", ToMountedJson(stats)},
          {"index", IndexToJson(stats.index, "/srv/store", std::nullopt)},
          {"survey", ToJson(survey)}};
}

std::string PageOf(const Json& document, std::string health = "ok") {
  return report::MakeStoreReport(
      document, {.version = "1.2", .health = std::move(health), .made_at = kSomeTime});
}

}  // namespace

TEST_CASE("a report of a store has its figures, and changes nothing in the store") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  MakeStore(store);
  const Json stats = Json::parse(Run({"siltfs", "stat", "--json", store}).out);
  const auto files = [&] {
    std::map<std::string, std::filesystem::file_time_type> times;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(store))
      times[entry.path()] = entry.last_write_time();
    return times;
  };
  const auto before = files();
  const std::string output = directory / "report.html";
  const Outcome outcome = Run({"siltfs", "report", store, "-o", output});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.empty());
  CHECK(files() == before);
  const std::string page = TextOf(output);
  CHECK(SumIn(page, "chunk-sizes") == stats.at("chunks_unique"));
  CHECK(SumIn(page, "sharing") == stats.at("chunks_unique"));
  CHECK(SumIn(page, "index") == stats.at("index").at("entries"));
  CHECK(Has(page, "<h1>" + store + "</h1>"));
  CHECK(Has(page, "<span class=\"health ok\">ok</span>"));
  CHECK_FALSE(std::filesystem::exists(directory / "survey"));
}

TEST_CASE("a report replaces a file as a whole, and refuses what is no file before it works") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  MakeStore(store);
  std::filesystem::create_directory(directory / "page");
  const Outcome on_directory = Run({"siltfs", "report", store, "-o", directory / "page"});
  CHECK(on_directory.code == 1);
  CHECK(Has(on_directory.err, "is not a regular file"));
  CHECK(Lines(on_directory.err) == 1);
  const Outcome nowhere = Run({"siltfs", "report", store, "-o", directory / "none/page"});
  CHECK(nowhere.code == 1);
  CHECK(Has(nowhere.err, directory / "none/page"));
  const std::string output = directory / "page.html";
  std::ofstream(output) << "old";
  CHECK(Run({"siltfs", "report", directory / "no store", "-o", output}).code == 10);
  CHECK(TextOf(output) == "old");
  CHECK(Run({"siltfs", "report", store, "--quiet", "--output", output}).code == 0);
  CHECK(TextOf(output).ends_with("</html>\n"));
  size_t beside = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
    beside += entry.path().filename().string().starts_with("page.html") ? 1 : 0;
  CHECK(beside == 1);
  CHECK(Run({"siltfs", "report", store}).code == 2);
}

TEST_CASE("no report and no metrics take the place of a file of the store") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  MakeStore(store);
  std::filesystem::create_directory_symlink(store, directory / "link");
  const std::string superblock = TextOf(store + "/superblock.0");
  for (const std::string& file : {store + "/superblock.0", store + "/meta/page.html",
                                  directory / "link/superblock.0", store + "/page.html"}) {
    INFO(file);
    const Outcome report = Run({"siltfs", "report", store, "-o", file});
    CHECK(report.code == 2);
    CHECK(Has(report.err, "is in the store's own directory"));
    CHECK(Run({"siltfs", "metrics", store, "--output", file}).code == 2);
  }
  CHECK(TextOf(store + "/superblock.0") == superblock);
  CHECK(Run({"siltfs", "report", store, "-o", store + ".html"}).code == 0);
  // The daemon of a mounted store goes on if the directory is moved, and the mount table has the
  // old path. The files of other stores are kept, too.
  const std::string other = directory / "other";
  MakeStore(other);
  const std::string kept = TextOf(other + "/superblock.0");
  for (const std::string& file : {other + "/superblock.0", other + "/meta/page.html"}) {
    INFO(file);
    const Outcome report = Run({"siltfs", "report", store, "-o", file});
    CHECK(report.code == 2);
    CHECK(Has(report.err, "is in the store's own directory"));
    CHECK(Run({"siltfs", "metrics", store, "--output", file}).code == 2);
    CHECK(Run({"siltfs", "metrics", directory / "none", "--output", file}).code == 2);
  }
  CHECK(TextOf(other + "/superblock.0") == kept);
}

TEST_CASE("a hostile path of a store injects no markup") {
  const TemporaryDirectory directory;
  const std::string store = directory / "<img src=x onerror=alert(1)>\"'&\xff\n";
  MakeStore(store);
  const std::string output = directory / "page.html";
  const Outcome outcome = Run({"siltfs", "report", store, "-o", output});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const std::string page = TextOf(output);
  CHECK_FALSE(Has(page, "<img"));
  CHECK(Has(page, "&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;\\xff\\n</h1>"));
}

TEST_CASE("an empty store has a report, too") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  REQUIRE(Run({"siltfs", "mkfs", store}).code == 0);
  const std::string output = directory / "page.html";
  const Outcome outcome = Run({"siltfs", "report", store, "-o", output});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const std::string page = TextOf(output);
  CHECK(Has(page, "No file has content yet."));
  CHECK_FALSE(Has(page, "nan"));
  CHECK_FALSE(Has(page, "inf<"));
}

TEST_CASE("a report shows every part of the document") {
  const Json document = SomeDocument();
  const std::string page = PageOf(document);
  CHECK(SumIn(page, "chunk-sizes") == 30);
  CHECK(SumIn(page, "sharing") == 30);
  CHECK(Has(page, "data-plot=\"memory-history\""));
  CHECK(Has(page, "data-damage=\"0\""));
  CHECK(Has(page, "mounted on /mnt"));
  CHECK(Has(page, "<dt>Samples</dt><dd>4</dd>"));
  CHECK(Has(page, "<dt>Used once</dt><dd>33.3 %</dd>"));
  CHECK(Has(page, "<dt>In use</dt><dd>50.0 %</dd>"));
  CHECK_FALSE(Has(page, "estimates"));
  CHECK(Has(PageOf(document, "damaged"), "<span class=\"health bad\">damaged</span>"));
}

TEST_CASE("figures of a sample are scaled, and the page says so") {
  Json document = SomeDocument();
  document["survey"]["scale"] = 8;
  const std::string page = PageOf(document);
  CHECK(SumIn(page, "chunk-sizes") == 240);
  CHECK(SumIn(page, "sharing") == 240);
  CHECK(Has(page, "one chunk in 8 was examined"));
  CHECK(Has(page, "<dt>References</dt><dd>800</dd>"));
}

TEST_CASE("a store without scrubs, and an index that lacks chunks, are pointed out") {
  Json document = SomeDocument();
  document["stats"]["last_scrub"] = nullptr;
  document["survey"]["scrubs"] = Json::array();
  document["survey"]["not_indexed"] = 5;
  document["survey"]["segments"]["cells"][0]["live"] = nullptr;
  document["survey"]["segments"]["live_bytes"] = nullptr;
  const std::string page = PageOf(document);
  CHECK(Has(page, "No scrub has verified the whole store yet."));
  CHECK(Has(page, "The index lacks 5 chunks"));
  CHECK(Has(page, "cell unknown"));
}

}  // namespace siltfs::testing
