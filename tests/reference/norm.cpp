#include "tests/reference/reference_backend.h"
#include "tests/reference/values.h"

namespace crucible::reference {
namespace {

struct Moments {
  Real mean;
  Real squares;  // sum of squared deviations
};

// Of x[begin], x[begin + step], ...: n values.
Moments moments(const std::vector<Real>& x, int64_t begin, int64_t step, int64_t n) {
  Sum sum, squares;
  for (int64_t i = 0; i < n; ++i) sum.add(x[begin + i * step]);
  const Real mean = sum.total() / Real(static_cast<double>(n));
  for (int64_t i = 0; i < n; ++i) {
    const Real d = x[begin + i * step] - mean;
    squares.add(d * d);
  }
  return {mean, squares.total()};
}

Real reciprocal_deviation(Real variance, double eps) {
  return Real(1.0) / sqrt(variance + Real(eps));
}

}  // namespace

void ReferenceBackend::kernel(const prim::BatchNorm& p) {
  const int64_t rows = p.x.size(0), channels = p.x.size(1);
  const std::vector<Real> x = read(p.x), gamma = read(p.gamma), beta = read(p.beta);
  const std::vector<Real> residual = read(p.residual);
  std::vector<Real> running_mean = read(p.running_mean), running_var = read(p.running_var);
  std::vector<Real> mean(channels), rstd(channels), y(rows * channels);
  const double n = static_cast<double>(rows);
  for (int64_t c = 0; c < channels; ++c) {
    if (p.training) {
      const Moments m = moments(x, c, channels, rows);
      mean[c] = m.mean;
      rstd[c] = reciprocal_deviation(m.squares / Real(n), p.eps);
      const Real keep = Real(1.0 - p.momentum), take = Real(p.momentum);
      running_mean[c] = keep * running_mean[c] + take * m.mean;
      running_var[c] = keep * running_var[c] + take * (m.squares / Real(n - 1.0));
    } else {
      mean[c] = running_mean[c];
      rstd[c] = reciprocal_deviation(running_var[c], p.eps);
    }
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t i = r * channels + c;
      Sum sum;  // a backend may fold mean and gamma into one factor and one shift
      const Real factor = gamma[c] * rstd[c];
      sum.add(factor * x[i]);
      sum.add(-(factor * mean[c]));
      sum.add(beta[c]);
      if (!residual.empty()) sum.add(residual[i]);
      y[i] = sum.total();
      if (p.relu && y[i].value <= 0.0) y[i] = {0.0, std::max(0.0, y[i].value + y[i].error)};
    }
  }
  if (p.training) {
    write(p.running_mean, running_mean);
    write(p.running_var, running_var);
  }
  write(p.mean, mean);
  write(p.rstd, rstd);
  write(p.y, y);
}

void ReferenceBackend::kernel(const prim::BatchNormBackward& p) {
  const int64_t rows = p.x.size(0), channels = p.x.size(1);
  const std::vector<Real> x = read(p.x), y = read(p.y), gamma = read(p.gamma), beta = read(p.beta);
  const std::vector<Real> mean = read(p.mean), rstd = read(p.rstd);
  std::vector<Real> dz = read(p.dy);
  std::vector<Real> dx(rows * channels), dgamma(channels), dbeta(channels);
  for (int64_t c = 0; c < channels; ++c) {
    Sum sum_dz, sum_dz_xhat;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t i = r * channels + c;
      const Real xhat = (x[i] - mean[c]) * rstd[c];
      const double out = y.empty() ? (gamma[c] * xhat + beta[c]).value : y[i].value;
      if (p.relu && out <= 0.0) dz[i] = 0.0;
      sum_dz.add(dz[i]);
      sum_dz_xhat.add(dz[i] * xhat);
    }
    dbeta[c] = sum_dz.total();
    dgamma[c] = sum_dz_xhat.total();
    const Real n = static_cast<double>(rows);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t i = r * channels + c;
      const Real xhat = (x[i] - mean[c]) * rstd[c];
      Sum sum;
      sum.add(dz[i]);
      if (p.training) {
        sum.add(-(dbeta[c] / n));
        sum.add(-(xhat * dgamma[c] / n));
      }
      dx[i] = gamma[c] * rstd[c] * sum.total();
    }
  }
  write(p.dx, dx);
  write(p.dresidual, dz);
  write(p.dgamma, dgamma);
  write(p.dbeta, dbeta);
}

void ReferenceBackend::kernel(const prim::LayerNorm& p) {
  const int64_t rows = p.x.size(0), width = p.x.size(1);
  const std::vector<Real> x = read(p.x), gamma = read(p.gamma), beta = read(p.beta);
  std::vector<Real> mean(rows), rstd(rows), y(rows * width);
  for (int64_t r = 0; r < rows; ++r) {
    const Moments m = moments(x, r * width, 1, width);
    mean[r] = m.mean;
    rstd[r] = reciprocal_deviation(m.squares / Real(static_cast<double>(width)), p.eps);
    for (int64_t c = 0; c < width; ++c) {
      y[r * width + c] = gamma[c] * ((x[r * width + c] - mean[r]) * rstd[r]) + beta[c];
    }
  }
  write(p.mean, mean);
  write(p.rstd, rstd);
  write(p.y, y);
}

void ReferenceBackend::kernel(const prim::LayerNormBackward& p) {
  const int64_t rows = p.x.size(0), width = p.x.size(1);
  const std::vector<Real> x = read(p.x), gamma = read(p.gamma), dy = read(p.dy);
  const std::vector<Real> mean = read(p.mean), rstd = read(p.rstd);
  std::vector<Real> dx(rows * width), dgamma, dbeta;
  std::vector<Sum> sum_gamma(width), sum_beta(width);
  const Real n = static_cast<double>(width);
  for (int64_t r = 0; r < rows; ++r) {
    auto xhat = [&](int64_t c) { return (x[r * width + c] - mean[r]) * rstd[r]; };
    auto g = [&](int64_t c) { return dy[r * width + c] * gamma[c]; };
    Sum sum_g, sum_g_xhat;
    for (int64_t c = 0; c < width; ++c) {
      sum_g.add(g(c));
      sum_g_xhat.add(g(c) * xhat(c));
      sum_gamma[c].add(dy[r * width + c] * xhat(c));
      sum_beta[c].add(dy[r * width + c]);
    }
    for (int64_t c = 0; c < width; ++c) {
      Sum sum;
      sum.add(g(c));
      sum.add(-(sum_g.total() / n));
      sum.add(-(xhat(c) * sum_g_xhat.total() / n));
      dx[r * width + c] = rstd[r] * sum.total();
    }
  }
  for (int64_t c = 0; c < width; ++c) {
    dgamma.push_back(sum_gamma[c].total());
    dbeta.push_back(sum_beta[c].total());
  }
  write(p.dx, dx);
  write(p.dgamma, dgamma);
  write(p.dbeta, dbeta);
}

}  // namespace crucible::reference
