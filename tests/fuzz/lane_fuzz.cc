// The daemon answers arbitrary requests of an import or an export, as a hostile client may send
// them. It must not crash, its answers must be understood, and the store must stay consistent.
//
// The input: the user, import or export, then requests, each with what its slot has.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "fs/check/check_store.h"
#include "fs/export/export_lane.h"
#include "fs/import/import_lane.h"
#include "fs/open/make_store.h"
#include "fs/transfer/content_record.h"
#include "store/base/random.h"
#include "store/env/sim_env.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/lane_client.h"

namespace siltfs::testing {
namespace {

using transfer::Answer;
using transfer::Request;
using transfer::RequestType;

const std::string kStore = "/store";
constexpr uint32_t kUser = 1000;
constexpr Caller kCaller{.uid = kUser, .gid = kUser};
constexpr size_t kMostRequests = 24;

struct NoKernel final : KernelCache {
  void ForgetName(InodeNumber, const std::string&) override {}
  void ForgetInode(InodeNumber, bool) override {}
};

Result<std::unique_ptr<FileSystem>> Open(Env& env) {
  FileSystemOptions options;
  options.store = kStore;
  options.commit_interval = std::chrono::hours(1);
  return FileSystem::Open(env, options);
}

void Fill(FileSystem& fs) {
  Random random(5);
  Bytes bytes(100'000);
  random.Fill(bytes);
  const InodeNumber directory = Must(fs.MakeDirectory(kRootInode, "d", 0755, kCaller)).inode;
  MustHold(fs.MakeDirectory(directory, "inner", 0700, {.uid = 0, .gid = 0}).ok(), "a directory");
  for (const std::string name : {"file", "open"}) {
    const InodeNumber file = Must(fs.CreateFile(directory, name, 0644, kCaller)).inode;
    MustHold(fs.Write(file, 5000, bytes).ok(), "a file is written");
    MustHold(fs.SetXattr(file, "user.a", "value", XattrMode::kSet).ok(), "an attribute is set");
    if (name == "file") fs.ReleaseFile(file);  // the other one keeps its overlay
  }
  MustHold(fs.MakeSymlink(directory, "link", "../file", kCaller).ok(), "a link is made");
  MustHold(fs.MakeNode(directory, "fifo", 0010644, 0, kCaller).ok(), "a node is made");
}

const SimEnv& Template() {
  static const std::unique_ptr<SimEnv> made = [] {
    auto env = std::make_unique<SimEnv>(7);
    MakeStoreOptions options;
    options.path = kStore;
    MustHold(MakeStore(*env, options).ok(), "a store is made");
    auto fs = Must(Open(*env));
    Fill(*fs);
    MustHold(fs->Close().ok(), "the store is closed");
    fs.reset();
    return env;
  }();
  return *made;
}

// The client must understand the answer.
void CheckAnswer(const Request& request, const Answer& answer, ByteView slot,
                 FuzzedClient& client) {
  MustHold(answer.bytes <= slot.size(), "an answer fits in its slot");
  const auto told = transfer::DecodeAnswer(transfer::EncodeAnswer(answer));
  MustHold(told.ok(), "an answer is decoded");
  if (!transfer::StatusOfAnswer(*told).ok()) return;
  const ByteView bytes = slot.first(answer.bytes);
  const auto learn = [&](InodeNumber inode) {
    if (inode != 0) client.Learn(inode);
  };
  switch (request.type) {
    case RequestType::kOpenDirectory:
      return learn(answer.number);
    case RequestType::kPut:
    case RequestType::kOffer:
    case RequestType::kFinishFile:
      for (const auto& outcome : Must(transfer::DecodeOutcomes(bytes, answer.count)))
        learn(outcome.inode);
      return;
    case RequestType::kList:
      Must(transfer::DecodeListedNames(bytes, answer.count));
      return;
    case RequestType::kReadEntries:
    case RequestType::kReadSelf:
      Must(transfer::DecodeRecords(bytes, answer.count));
      return;
    case RequestType::kLocate:
      Must(transfer::DecodePieces(bytes, answer.count));
      return;
    default:
      return;
  }
}

void Serve(FileSystem& fs, FuzzInput& input) {
  const bool superuser = input.Number(1) % 2 == 0;
  const bool import = input.Number(1) % 4 != 0;
  const CallerRights rights(fs, superuser ? 0 : kUser, {superuser ? 0 : kUser});
  OpenedDirectories opened;
  NoKernel kernel;
  const std::function<bool()> stopped = [] { return false; };
  const ImportContext context{fs, kernel, rights, opened, stopped};
  std::unique_ptr<transfer::LaneHandler> lane;
  if (import) {
    lane = std::make_unique<ImportLane>(context);
  } else {
    lane = std::make_unique<ExportLane>(fs, rights, stopped);
  }
  Bytes slot(transfer::kSlotBytes);
  FuzzedClient client(input, import);
  for (size_t sent = 0; !input.empty() && sent < kMostRequests; ++sent) {
    // The daemon decodes the request first, so what it refuses never gets to the lane.
    const auto request = transfer::DecodeRequest(transfer::EncodeRequest(client.Next(slot)));
    if (!request.ok()) {
      request.status().IgnoreError("any bytes may be refused");
      continue;
    }
    CheckAnswer(*request, lane->Handle(*request, slot), slot, client);
  }
}

}  // namespace

void RunLane(FuzzInput input) {
  const std::unique_ptr<SimEnv> env = Template().Fork();
  auto fs = Must(Open(*env));
  Serve(*fs, input);
  MustHold(fs->Close().ok(), "the store is closed");
  fs.reset();
  CheckOptions options;
  options.store = kStore;
  MustHold(Must(CheckStore(*env, options)).findings == 0, "the store is consistent");
}

// Random requests, after some that attach the root and the directory "d".
std::vector<Bytes> FuzzSeeds() {
  std::vector<Bytes> seeds;
  Random random(3);
  for (uint8_t number = 0; number < 24; ++number) {
    Bytes rest(1000);
    random.Fill(rest);
    const uint8_t superuser = number % 2;
    const uint8_t import = number % 8;
    // A type, flags, an inode, no second number, and an empty payload.
    seeds.push_back(
        JoinInput({superuser, import, 0, 0, 1, 15, 7, 15, 0, 0, 0, 2, 15, 7, 15, 0}, rest));
  }
  return seeds;
}

}  // namespace siltfs::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  siltfs::testing::RunLane(siltfs::testing::FuzzInput(data, size));
  return 0;
}
