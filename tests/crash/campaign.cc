#include "tests/crash/campaign.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>

#include "store/base/coding.h"
#include "tests/crash/bucket_sequence.h"
#include "tests/crash/sequence_cuts.h"
#include "tests/support/schedule_perturbation.h"

namespace siltfs::testing {
namespace {

constexpr int kHangSeconds = 180;  // a worker that sends nothing for this time counts as hung
constexpr size_t kProblemsKept = 10;
// A campaign with this many cuts, or more, has several sequences in stores with deltas.
constexpr uint64_t kCutsWithDeltas = 500;
constexpr uint64_t kLeastDeltaCuts = 10;
constexpr auto kProgressEvery = std::chrono::seconds(5);

enum MessageType : uint8_t { kSequence, kCuts, kProblem };

// --- In a worker process

class Worker {
 public:
  Worker(const CampaignOptions& options, unsigned number, int pipe)
      : options_(options), number_(number), pipe_(pipe) {}

  [[noreturn]] void Run(uint64_t cuts) {
    left_ = cuts;
    for (uint64_t i = 0; left_ > 0; ++i) {
      const uint64_t seed =
          Random(options_.seed + (i * options_.jobs + number_) * 0x9E3779B97F4A7C15).Next();
      const bool deltas = PlanSequence(seed, options_.workload).store.deltas;
      Send(Encoder().U8(kSequence).U64(seed).U8(deltas ? 1 : 0));
      const uint64_t before = left_;
      if (options_.perturb) PerturbSchedule(seed);
      const CutVerdict verdict = [this, seed](const CutReport& report, const CutChain& chain) {
        Report(seed, report, chain);
      };
      if (options_.bucket) {
        RunBucketSequence(seed, left_, [this, seed](const BucketPoint& point) {
          Report(seed,
                 {.problem = point.problem,
                  .place = fmt::format("sequence {}: {}", seed, point.place),
                  .in_recovery = point.disk_lost},
                 {});
        });
      } else if (options_.rot) {
        RotSequence(seed, options_.workload, left_, verdict);
      } else {
        CutSequence(seed, options_.workload, left_, options_.injection, verdict);
      }
      if (left_ == before) --left_;  // counts a sequence without cuts, so that the loop ends
    }
    _exit(0);
  }

 private:
  void Report(uint64_t seed, const CutReport& report, const CutChain& chain) {
    --left_;
    const bool counted = options_.rot ? report.noticed : report.in_recovery;
    Send(Encoder()
             .U8(kCuts)
             .U8(report.problem.empty() ? 0 : 1)
             .U8(counted ? 1 : 0)
             .U8(report.deltas ? 1 : 0));
    if (report.problem.empty() || problems_++ >= kProblemsKept) return;
    std::string file;
    if (!options_.save_directory.empty() && !chain.links.empty()) {
      file = fmt::format("{}/cut-{:016x}-{}", options_.save_directory, seed, problems_);
      const Status saved = SaveChain(chain, file);
      if (!saved.ok()) file = "not saved: " + saved.ToString();
    }
    auto shortened = [](const std::string& text) { return text.substr(0, 2000); };
    Send(Encoder()
             .U8(kProblem)
             .Text16(shortened(report.place))
             .Text16(shortened(report.problem))
             .Text16(file));
  }

  // Sends the message, preceded by its length.
  void Send(const Encoder& message) {
    const std::string all =
        Encoder().U32(static_cast<uint32_t>(message.size())).Take() + message.text();
    for (size_t sent = 0; sent < all.size();) {
      const ssize_t now = write(pipe_, all.data() + sent, all.size() - sent);
      if (now <= 0) _exit(3);  // no reader is left
      sent += static_cast<size_t>(now);
    }
  }

  const CampaignOptions& options_;
  const unsigned number_;
  const int pipe_;
  uint64_t left_ = 0;
  size_t problems_ = 0;
};

// --- In the parent process

struct Running {
  pid_t process = 0;
  int pipe = -1;
  uint64_t seed = 0;  // of its current sequence
  Bytes buffer;
  std::chrono::steady_clock::time_point heard = std::chrono::steady_clock::now();
};

class Supervisor {
 public:
  explicit Supervisor(const CampaignOptions& options) : options_(options) {}

  CampaignResult Run() {
    for (unsigned i = 0; i < options_.jobs; ++i) Start(i);
    while (!running_.empty()) Listen();
    CheckDeltas();
    return std::move(result_);
  }

 private:
  void Start(unsigned number) {
    const uint64_t share =
        options_.cuts / options_.jobs + (number < options_.cuts % options_.jobs ? 1 : 0);
    int ends[2];
    if (share == 0 || pipe(ends) != 0) return;
    const pid_t process = fork();
    if (process == 0) {
      close(ends[0]);
      Worker(options_, number, ends[1]).Run(share);
    }
    close(ends[1]);
    running_.push_back({process, ends[0], 0, {}});
  }

  void Listen() {
    std::vector<pollfd> ends;
    for (const Running& worker : running_) ends.push_back({worker.pipe, POLLIN, 0});
    poll(ends.data(), ends.size(), 1000);
    for (size_t i = ends.size(); i-- > 0;) {
      if (ends[i].revents != 0) {
        Hear(i);
      } else if (std::chrono::steady_clock::now() - running_[i].heard >
                 std::chrono::seconds(kHangSeconds)) {
        kill(running_[i].process, SIGABRT);
      }
    }
    const auto now = std::chrono::steady_clock::now();
    if (options_.progress && now - told_ > kProgressEvery) {
      told_ = now;
      options_.progress(result_.cuts, result_.illegal);
    }
  }

  void Hear(size_t i) {
    Running& worker = running_[i];
    uint8_t bytes[4096];
    const ssize_t got = read(worker.pipe, bytes, sizeof bytes);
    if (got <= 0) return End(i);
    worker.heard = std::chrono::steady_clock::now();
    worker.buffer.insert(worker.buffer.end(), bytes, bytes + got);
    for (;;) {
      Decoder in(worker.buffer);
      const uint32_t length = in.U32();
      const ByteView message = in.Raw(length);
      if (!in.ok()) return;
      Take(worker, message);
      worker.buffer.erase(worker.buffer.begin(), worker.buffer.begin() + 4 + length);
    }
  }

  void Take(Running& worker, ByteView message) {
    Decoder in(message);
    switch (in.U8()) {
      case kSequence:
        worker.seed = in.U64();
        ++result_.sequences;
        result_.delta_sequences += in.U8();
        break;
      case kCuts:
        ++result_.cuts;
        result_.illegal += in.U8();
        (options_.rot ? result_.noticed : result_.recoveries_cut) += in.U8();
        result_.delta_cuts += in.U8();
        break;
      default: {
        CampaignProblem problem;
        problem.place = in.Text16();
        problem.what = in.Text16();
        problem.file = in.Text16();
        Keep(std::move(problem));
      }
    }
  }

  // A campaign without deltas would not find a fault that loses bases. An injected fault is found
  // by illegal cuts only.
  void CheckDeltas() {
    const bool expected = !options_.bucket && options_.workload != Workload::kImports &&
                          options_.workload != Workload::kSnapshots &&
                          options_.workload != Workload::kQuotas &&
                          result_.cuts >= kCutsWithDeltas && options_.injection == Injection::kNone;
    if (!expected || result_.delta_cuts >= kLeastDeltaCuts) return;
    ++result_.illegal;
    Keep({"campaign",
          fmt::format("only {} of its cuts were made in stores with deltas", result_.delta_cuts),
          ""});
  }

  void Keep(CampaignProblem problem) {
    if (result_.problems.size() < kProblemsKept) result_.problems.push_back(std::move(problem));
  }

  void End(size_t i) {
    const Running worker = std::move(running_[i]);
    running_.erase(running_.begin() + static_cast<ptrdiff_t>(i));
    close(worker.pipe);
    int status = 0;
    waitpid(worker.process, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    ++result_.illegal;
    Keep({fmt::format("sequence {}", worker.seed),
          WIFSIGNALED(status) ? fmt::format("the process ended by signal {}", WTERMSIG(status))
                              : fmt::format("the process ended with {}", WEXITSTATUS(status)),
          ""});
  }

  const CampaignOptions& options_;
  std::vector<Running> running_;
  CampaignResult result_;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
};

}  // namespace

CampaignResult RunCampaign(const CampaignOptions& options) { return Supervisor(options).Run(); }

}  // namespace siltfs::testing
