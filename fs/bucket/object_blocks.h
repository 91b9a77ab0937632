// Reads whole segments from their objects in the bucket, and verifies each block.
//
// Thread-safety: any thread. Memory: 4 MiB a call. Errors: those of the ObjectStore and of the
// callback; kCorruption, with the key, if the object is damaged, has another length or belongs to
// another segment, also after several tries.
#pragma once

#include <cstdint>
#include <functional>

#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/bucket/segment_content.h"
#include "store/bucket/segment_object.h"
#include "store/env/env.h"
#include "store/object/object_store.h"

namespace siltfs {

// Called with bytes of the segment, in ascending order.
using TakeBytes = std::function<Status(uint64_t offset, ByteView bytes)>;

// The checksums in the trailer of the object.
Result<BlockChecksums> ReadTrailer(ObjectStore& objects, const SegmentContent& content);

// Blocks that `image` has are taken from there; null: all come from the bucket.
Status ReadObjectBlocks(ObjectStore& objects, const SegmentContent& content,
                        const ReadableFile* image, const TakeBytes& take);

// The same for a local file with the whole content, which has no checksums.
Status CopyBlocks(const SegmentContent& content, const ReadableFile& file, const TakeBytes& take);

}  // namespace siltfs
