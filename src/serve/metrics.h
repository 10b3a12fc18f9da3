// OpenMetrics of a run: what Prometheus and others scrape. Pure.
#pragma once
#include <string>

#include "report/contents.h"

namespace millpond::serve {

constexpr const char* kMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";
std::string openmetrics(const report::RunContents& run);

}  // namespace millpond::serve
