// Standard input and output that count the bytes of the stream that passes through them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "store/env/piped_streams.h"

namespace siltfs {

// Thread-safety: as PipedStreams; `bytes` from any thread. Borrows the streams that it counts.
class CountedStreams final : public PipedStreams {
 public:
  explicit CountedStreams(PipedStreams& streams) : streams_(streams) {}

  bool InputIsTerminal() const override { return streams_.InputIsTerminal(); }
  bool OutputIsTerminal() const override { return streams_.OutputIsTerminal(); }
  std::unique_ptr<ByteSource> Input(Check check) override {
    return std::make_unique<Source>(streams_.Input(std::move(check)), bytes_);
  }
  std::unique_ptr<ByteSink> Output(Check check) override {
    return std::make_unique<Sink>(streams_.Output(std::move(check)), bytes_);
  }

  // Read and written so far.
  uint64_t bytes() const { return bytes_; }

 private:
  class Source final : public ByteSource {
   public:
    Source(std::unique_ptr<ByteSource> source, std::atomic<uint64_t>& bytes)
        : source_(std::move(source)), bytes_(bytes) {}
    Result<size_t> Read(MutableByteView out) override {
      auto read = source_->Read(out);
      if (read.ok()) bytes_ += *read;
      return read;
    }
    void SetPatience(std::optional<std::chrono::nanoseconds> patience) override {
      source_->SetPatience(patience);
    }

   private:
    const std::unique_ptr<ByteSource> source_;
    std::atomic<uint64_t>& bytes_;
  };
  class Sink final : public ByteSink {
   public:
    Sink(std::unique_ptr<ByteSink> sink, std::atomic<uint64_t>& bytes)
        : sink_(std::move(sink)), bytes_(bytes) {}
    Status Write(ByteView bytes) override {
      SILTFS_RETURN_IF_ERROR(sink_->Write(bytes));
      bytes_ += bytes.size();
      return Status::Ok();
    }

   private:
    const std::unique_ptr<ByteSink> sink_;
    std::atomic<uint64_t>& bytes_;
  };

  PipedStreams& streams_;
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace siltfs
