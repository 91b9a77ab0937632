// The order of the lookups of a batch, for engines that know to which channel of the device a page
// belongs ("Design Patterns for Tunable and Efficient SSD-based Indexes", section 5.2). A device
// reads from several channels at the same time, but from one channel only one page after another.
//
// The order is that of the paper's scheduler: it takes several passes over the waiting requests,
// and each pass raises the depth of a channel by at most one. So the requests that are in the read
// queue together are spread over as many channels as possible.
//
// Functions only, safe to call from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace siltfs {

// Of a lookup that probably reads no page.
inline constexpr uint32_t kNoChannel = UINT32_MAX;

// Returns the numbers of all requests: those without a channel first, then one request of each
// channel, then the next one of each channel, and so on. Requests of one channel keep their order.
// Each channel is kNoChannel or below `channels`. Memory: 4 bytes for each request and channel.
std::vector<uint32_t> SpreadOverChannels(std::span<const uint32_t> channel_of_request,
                                         uint32_t channels);

}  // namespace siltfs
