// An engine whose parameters give a shape, such as the sizes of tables, from which its partitions
// are made; and what rows of such engines have in common.
//
// `Partition` is a FlashPartition with a constructor and a function Open that take the shape.
//
// Thread-safety: as FlashEngine. Ownership: rows live as long as the program.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "index/flash/flash_partition.h"
#include "index/flash/stored_parameters.h"
#include "index/index_engine.h"

namespace siltfs {

template <typename Shape, typename Partition>
class ShapedEngine : public FlashEngine {
 public:
  using MakeShape = Shape (*)(const EngineParameters& parameters);

  ShapedEngine(const IndexEngineRow& row, MakeShape make_shape, const EngineParameters& parameters)
      : row_(row),
        make_shape_(make_shape),
        parameters_(parameters),
        shape_(make_shape(parameters)) {}

  std::string_view name() const override { return row_.name; }
  std::string EncodeParameters() const override {
    return EncodeEngineParameters(row_.parameters, parameters_);
  }
  Status DecodeParameters(ByteView bytes) override {
    SILTFS_ASSIGN_OR_RETURN(parameters_, DecodeEngineParameters(name(), row_.parameters, bytes));
    shape_ = make_shape_(parameters_);
    return Status::Ok();
  }
  std::unique_ptr<FlashPartition> Make(FlashContext& context, uint64_t id,
                                       const HashPrefix& prefix) const override {
    return std::make_unique<Partition>(context, id, prefix, shape_);
  }
  Result<std::unique_ptr<FlashPartition>> Open(FlashContext& context, uint64_t id,
                                               const HashPrefix& prefix,
                                               ByteView state) const override {
    return Partition::Open(context, id, prefix, shape_, state);
  }

 protected:
  const Shape& shape() const { return shape_; }

 private:
  const IndexEngineRow& row_;
  const MakeShape make_shape_;
  EngineParameters parameters_;
  Shape shape_;
};

// The size of a record on flash.
inline constexpr EngineParameterSpec kRecordBytesParameter = {.name = "record_bytes",
                                                              .least = RecordLayout::kEntrySize,
                                                              .most = RecordLayout::kPaperSize,
                                                              .value = RecordLayout::kEntrySize};

// The number of partitions of an index, if a partition has at least so many entries. An index has
// never fewer partitions than a new one, 2^`partition_bits`.
inline double PlannedPartitions(const IndexPlanQuestion& question,
                                const EngineParameterSpec& partition_bits, double least_entries) {
  return std::max(static_cast<double>(uint64_t{1} << ValueOf(partition_bits, question.parameters)),
                  static_cast<double>(question.entries) / least_entries);
}

}  // namespace siltfs
