# A system in another language: a noisy count, run many times on two neighboring databases. It writes a.csv and b.csv.
# Rscript noisy_count.R

set.seed(1)

noisy_count <- function(people, runs, epsilon) {
  # Two-tailed geometric noise: the difference of two geometric numbers.
  success <- 1 - exp(-epsilon)
  people + rgeom(runs, success) - rgeom(runs, success)
}

runs <- 4000
write.table(noisy_count(120, runs, 1), "a.csv", row.names = FALSE, col.names = "count", quote = FALSE)
write.table(noisy_count(121, runs, 1), "b.csv", row.names = FALSE, col.names = "count", quote = FALSE)
